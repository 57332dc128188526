#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The runner of bench/ with programs that print results without measuring."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.environ["RPMA_SOURCE"], "bench")
sys.path.insert(0, BENCH)
from runner import case, disk_goals, goal_run, goals, guards, loop_disks, machine, mirror_goals, peer_goals, place, plot, \
    points, readme, rounds, table, verbs  # noqa: E402

# A stand-in for a benchmark: prints a line with the times from its environment for the requested
# work, and records that it ran.
PROGRAM = """#!/bin/sh
for word; do case $word in work=*) work=${word#work=};; esac; done
echo "$(basename "$0") $work" >>"$FAKE_LOG"
[ "$work" != "$FAKE_MISSING" ] || { echo "fake: cannot" >&2; exit 77; }
[ "$work" != "$FAKE_BROKEN" ] || { echo "fake: broken" >&2; exit 1; }
eval "us=\\${FAKE_$work:-10}"
echo "{\\"work\\":\\"$work\\",\\"count\\":1,\\"seconds\\":1,\\"p50_us\\":$us,\\"p99_us\\":$us,\\"ops_s\\":$us,\
\\"bytes_s\\":$us,\\"calm_p99_us\\":$us,\\"local_writebacks\\":${FAKE_WRITEBACKS:-1},\\"dist\\":[[50,$us],[99,$us]],\
\\"durability\\":\\"file\\",\\"disk_bytes\\":12288,\\"writebacks\\":${FAKE_WRITEBACKS:-1}}"
"""
PEER = """#!/bin/sh
if [ "$1" = list ]; then
	echo "who=ucx-tcp work=read size=64 suites=goals"
	echo "who=theirs work=instructions suites=goals"
	echo "who=ours work=instructions suites=goals"
	exit
fi
case $2 in who=ours) n=90;; *) n=100;; esac
echo "{\\"count\\":1,\\"seconds\\":1,\\"p50_us\\":30,\\"instructions\\":$n}"
"""
# A stand-in for perftest.sh: with Acks a message takes twice the time, over rings a fifth of the
# time.
PERFTEST = """#!/bin/sh
us=10
case "$*" in *ack=on*) us=20;; esac
[ "$BENCH_LINK" != shm ] || us=$((us / 5))
rate=$((100 / us))
echo "{\\"count\\":1,\\"seconds\\":1,\\"p50_us\\":$us,\\"ops_s\\":$rate,\\"bytes_s\\":$rate}"
"""
# A stand-in for scale: prints two lines for idle connections, one for each end, and one line for
# every other work.
SCALE = """#!/bin/sh
echo "$*" >>"$FAKE_LOG"
case $1 in
idle)
	echo '{"what":"idle","end":"initiator","allocated":8192,"cpu_percent_per_1000":0.05}'
	echo '{"what":"idle","end":"target","allocated":9216,"cpu_percent_per_1000":0.2}' ;;
connect) echo "{\\"what\\":\\"connect\\",\\"per_s\\":${3}000}" ;;
rate) echo "{\\"what\\":\\"rate\\",\\"per_s\\":$((100000 - 30 * $2))}" ;;
latency) echo '{"what":"latency","alone_ns":90,"beside_ns":105,"after_ns":110}' ;;
esac
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.folder.name, "log")
        for name in [name for name in os.environ if name.startswith("FAKE_")]:
            del os.environ[name]
        os.environ["FAKE_LOG"] = self.log
        for name in ("limit", "mirror", "ours", "rpmem", "durable/local"):
            self.write(name, PROGRAM)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(path, 0o755)
        return path

    def skip(self, why):
        print(why, file=sys.stderr)
        self.folder.cleanup()
        os._exit(77)

    def measure(self, goal, count=1):
        places = {"loopback": place.Loopback(), "shm": place.Loopback("shm")}
        plan = goal_run.Plan(case.Program(self.folder.name), places, "/var/tmp",
                             **{name: "/var/tmp" for name in ("loop1", "loop2", "disk1", "disk2")})
        return goal_run.measure([goal], plan, count, 1)["goals"][0]

    def goal(self, **more):
        return goals.Goal("a read", "<=", 1.25, "x", goals.times("ours", "limit"),
                          ours="who=ours work=read", limit="who=limit work=pingpong", **more)

    def run_all(self, *words):
        out = os.path.join(self.folder.name, "results")
        done = subprocess.run([sys.executable, "-B", os.path.join(BENCH, "run.py"), "--programs", self.folder.name,
                               "--results", out, "--peers", os.path.join(self.folder.name, "peers"), *words],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out, done.stdout

    def test_a_ratio_within_the_goal_is_met(self):
        os.environ.update(FAKE_read="12", FAKE_pingpong="10")
        row = self.measure(self.goal())
        self.assertEqual((row["measured"], row["met"]), (1.2, True))

    def test_a_miss_is_shown_as_not_met(self):
        os.environ.update(FAKE_read="13", FAKE_pingpong="10")
        row = self.measure(self.goal())
        self.assertIs(row["met"], False)
        self.assertIn("NOT met", "\n".join(table.lines([row])))
        self.assertIn("1 NOT met", table.summary([row]))

    def judged(self, *times):
        """A goal of 1.25, judged for rounds that took `times` of the limit."""
        goal = self.goal()
        for name, values in (("ours", times), ("limit", [1] * len(times))):
            goal.used[name] = rounds.Step({"who": name, "work": "read"}, None, place.Loopback())
            goal.used[name].lines = [{"p50_us": value} for value in values]
        return goal_run.judge(goal)

    def test_a_goal_that_some_rounds_miss_is_shown_as_such(self):
        row = self.judged(1.1, 1.3, 1.2, 1.4, 1.15)
        self.assertEqual((row["measured"], row["rounds_met"]), (1.2, 3))
        shown = "\n".join(table.lines([row]))
        self.assertRegex(shown, r"1\.200 +1\.100 \.\. 1\.400 +met in 3 of 5 rounds")
        self.assertEqual(table.summary([row]), "1 goals: 0 met, 1 met in some rounds, 0 NOT met, 0 not measured")
        self.assertIn("| 1.200 | 1.100 .. 1.400 | met in 3 of 5 rounds |", "\n".join(table.markdown([row])))

    def test_a_goal_that_all_or_no_rounds_meet_is_met_or_not(self):
        self.assertRegex("\n".join(table.lines([self.judged(1.1, 1.2)])), r"1\.100 \.\. 1\.200 +met$")
        self.assertRegex("\n".join(table.lines([self.judged(1.3, 1.4)])), r"1\.300 \.\. 1\.400 +NOT met$")

    def test_of_a_peer_that_has_only_the_mean_the_mean_counts_at_both_ends(self):
        goal = peer_goals._goal({"who": "libfabric-tcp", "work": "send", "size": "64"}, "loopback")
        lines = {"ours": {"p50_us": 10, "mean_us": 20}, "peer": {"mean_us": 30}}
        self.assertEqual(goal.value(lines.get), 1.5)
        lines["peer"] = {"p50_us": 12, "mean_us": 30}
        self.assertEqual(goal.value(lines.get), 1.2)

    def test_what_no_end_makes_persistent_has_no_goal(self):
        case_ = {"who": "libfabric-tcp", "work": "write_flush", "size": "64", "flush": "persistent"}
        self.assertIsNone(peer_goals._goal(case_, "loopback").op)
        self.assertIsNotNone(peer_goals._goal({**case_, "where": "/var/tmp"}, "loopback").op)

    def test_a_case_that_cannot_be_measured_is_shown_with_the_reason(self):
        os.environ["FAKE_MISSING"] = "read"
        row = self.measure(self.goal())
        self.assertIsNone(row["met"])
        self.assertRegex("\n".join(table.lines([row])), "not measured +cannot")

    def test_a_program_that_fails_meets_no_goal(self):
        os.environ["FAKE_BROKEN"] = "pingpong"
        row = self.measure(self.goal())
        self.assertIsNone(row["met"])
        self.assertIn("failed: broken", row["why"])

    def test_flushes_without_write_backs_meet_no_goal(self):
        os.environ.update(FAKE_write_flush="1", FAKE_WRITEBACKS="0")
        for disk in disk_goals.goals():
            row = self.measure(disk)
            if disk.op:
                self.assertIs(row["met"], False, row)
                self.assertRegex(row["why"], "0 write-backs|writebacks: 0")

    def test_goals_of_the_mirror_are_measured_where_links_can_be_limited_or_not(self):
        os.environ.update(FAKE_mirror_flush="11", FAKE_write_flush="10")
        places = {"loopback": place.Loopback(), "shm": place.Loopback("shm")}
        outcome = mirror_goals.measure(case.Program(self.folder.name), places, "/var/tmp", 1, 1)
        rows = {row["work"]: row for row in outcome["goals"]}
        self.assertEqual(rows["flush 64 B, 1 replica"]["measured"], 1)
        resync = rows["p99 of the flushes beside the resync"]
        self.assertTrue(resync["measured"] == 1 or "ip " in resync["why"] or "tc " in resync["why"], resync)

    def disk_rows(self, *words):
        out, _ = self.run_all("disk", "--rounds", "1", "--ms", "1", *words)
        with open(os.path.join(out, "disk.json"), encoding="utf-8") as record:
            return {row["work"]: row for row in json.load(record)["goals"]}

    def test_a_durable_write_is_compared_with_the_disk_and_a_round_trip(self):
        os.environ.update(FAKE_write_flush="131", FAKE_disk="100", FAKE_pingpong="20", FAKE_batch="150", FAKE_group="140",
                          FAKE_mirror_flush="125")
        rows = self.disk_rows("--dir2", "/var/tmp")
        self.assertEqual(list(rows), [goal.work for goal in disk_goals.goals()])
        found = {work: (rows[work]["measured"], rows[work]["met"]) for work in rows if rows[work]["goal"] != goals.NO_GOAL}
        self.assertEqual(found["write 64 B + persistent flush, initiator waits"], (1.092, True))
        self.assertEqual(found["shm: write 64 B + persistent flush, initiator polls"], (1.21, False))
        self.assertEqual(found["batch of 16 scattered x 64 B + persistent flush, initiator waits"], (1.145, True))
        self.assertEqual(found["64 clients, write 64 B + persistent flush"], (0.936, True))
        self.assertEqual(found["flush 64 B, files on two disks"], (0.954, True))
        self.assertEqual(found["flush 64 B, both copies on the same disk"], (1.25, True))
        self.assertEqual(found["flush of 64 scattered blocks of 4 KiB, both copies on the same disk"], (1.25, True))

    def test_without_a_second_disk_there_are_two_on_loop_devices(self):
        rows = self.disk_rows("--dir", self.folder.name)
        row = next(row for work, row in rows.items() if "two disks" in work)
        if row["why"]:
            self.skip(row["why"])
        self.assertIn("loop devices", row["work"])
        bytes_ = next(row for work, row in rows.items() if work.startswith("write 4 KiB") and "bytes" in work)
        self.assertEqual((bytes_["measured"], bytes_["met"]), (12, True))
        self.assertRegex(row["cases"]["mirror"], r"tgt_where=\S+-disk2 where=\S+-disk1")
        self.assertEqual([name for name in os.listdir(self.folder.name) if "disk" in name], [])

    def test_loop_devices_are_two_file_systems_and_gone_after_the_run(self):
        disks = loop_disks.LoopDisks(self.folder.name)
        try:
            with disks:
                self.assertEqual(len({os.stat(path).st_dev for path in (*disks.paths, self.folder.name)}), 3)
                mounted = [os.path.realpath(path) for path in disks.paths]
        except OSError as reason:
            self.skip(f"no loop devices here: {reason}")
        self.assertEqual([path for path in disks.paths if os.path.exists(path)], [])
        with open("/proc/self/mountinfo", encoding="ascii") as mounts:
            # not by device: another test may get the same loop device as soon as it is free
            left = [line for line in mounts if line.split()[4] in mounted]
        self.assertEqual(left, [])

    def test_bytes_that_reach_a_loop_device_are_counted(self):
        blocks = case.parse("who=ours work=batch every=8 size=4096 apart=65536 flush=persistent")
        program = case.Program(os.path.join(os.environ["RPMA_BINARY"], "bench"))
        self.assertNotIn("disk_bytes", program.run({**blocks, "where": self.folder.name}, place.Loopback(), 10))
        try:
            with loop_disks.LoopDisks(self.folder.name) as disks:
                line = program.run({**blocks, "where": disks.paths[0]}, place.Loopback(), 10)
        except OSError as reason:
            self.skip(f"no loop devices here: {reason}")
        self.assertGreaterEqual(line["disk_bytes"], 8 * 4096 * line["count"])
        self.assertEqual(line["disk_bytes"] % 512, 0)

    def test_loop_devices_of_a_killed_run_are_removed_by_the_next_one(self):
        begin = ("import sys, os, signal; sys.path.insert(0, sys.argv[1]); from runner import loop_disks\n"
                 "try: loop_disks.LoopDisks(sys.argv[2]).__enter__()\n"
                 "except OSError as reason: sys.exit(str(reason))\n"
                 "os.kill(os.getpid(), signal.SIGKILL)")
        done = subprocess.run([sys.executable, "-B", "-c", begin, BENCH, self.folder.name], capture_output=True, text=True,
                              check=False)
        if done.returncode > 0:
            self.skip(f"no loop devices here: {done.stderr}")
        self.assertEqual(len([name for name in os.listdir(self.folder.name) if "-disk" in name]), 2)
        loop_disks.remove_leftovers(self.folder.name)
        self.assertEqual([name for name in os.listdir(self.folder.name) if "-disk" in name], [])

    def test_cases_are_measured_in_turns(self):
        self.measure(self.goal(), count=2)
        with open(self.log, encoding="ascii") as log:
            self.assertEqual(log.read().split("\n")[:-1], ["ours read", "limit pingpong"] * 2)

    def test_without_time_each_case_is_measured_once(self):
        rounds.end_after(0)
        self.addCleanup(rounds.end_after, None)
        self.measure(self.goal(), count=3)
        with open(self.log, encoding="ascii") as log:
            self.assertEqual(log.read().split("\n")[:-1], ["ours read", "limit pingpong"])

    def test_a_ratio_is_made_of_one_round_and_the_median_counts(self):
        steps = [rounds.Step({"who": who, "work": "read"}, None, place.Loopback()) for who in ("ours", "limit")]
        for step, values in zip(steps, ((10, 40, 90), (10, 20, 30))):
            step.lines = [{"p50_us": value} for value in values]
        value = rounds.ratio(steps, lambda number: steps[0].lines[number]["p50_us"] / steps[1].lines[number]["p50_us"])
        self.assertEqual(value, 2)

    def test_a_peer_is_compared_with_the_same_work(self):
        os.environ["FAKE_read"] = "10"
        self.write("peers/other.sh", PEER)
        outcome = peer_goals.measure("quick", case.Program(self.folder.name), {"loopback": place.Loopback()},
                                     "/var/tmp", os.path.join(self.folder.name, "peers"), 1, 1)
        self.assertEqual([(row["work"], row["measured"], row["met"]) for row in outcome["goals"]],
                         [("ucx-tcp: work=read size=64", 3, True),
                          ("instructions per write + flush + get_wc, against theirs", 0.9, True)])

    def test_every_goal_is_in_the_table_and_in_the_record(self):
        out, printed = self.run_all("goals", "--rounds", "1", "--ms", "1")
        with open(os.path.join(out, "goals.json"), encoding="utf-8") as record:
            recorded = json.load(record)
        self.assertEqual([row["work"] for row in recorded["goals"]], [goal.work for goal in goals.all_goals()])
        for goal in goals.all_goals():
            self.assertIn(goal.work, printed)
        for name in ("cpu", "cores", "kernel", "load", "revision"):
            self.assertIn(name, recorded["machine"])

    def test_goals_of_librpmem_are_a_suite_of_their_own(self):
        os.environ.update(FAKE_rpmem_create="49000", FAKE_rpmem_persist="13", FAKE_rpmem_read="16")
        out, _ = self.run_all("rpmem", "--rounds", "1", "--ms", "1")
        with open(os.path.join(out, "rpmem.json"), encoding="utf-8") as record:
            rows = {row["work"]: row for row in json.load(record)["goals"]}
        self.assertEqual(list(rows), [goal.work for goal in goals.replica_goals()])
        self.assertEqual([rows[name]["met"] for name in ("rpmem_create, 1024 requested lanes", "rpmem_persist 64 B",
                                                         "rpmem_persist 1 MiB", "rpmem_read 64 B")],
                         [True, True, False, False])

    def test_sweeps_are_recorded_with_a_point_for_each_size(self):
        out, _ = self.run_all("size", "--ms", "1")
        with open(os.path.join(out, "size.json"), encoding="utf-8") as record:
            rows = json.load(record)["rows"]
        for line in ("read, TCP", "raw TCP stream"):
            self.assertEqual([row["at"] for row in rows if row["line"] == line], list(points.SIZES["quick"]))

    def test_a_point_has_its_ratio_to_the_limit(self):
        os.environ.update(FAKE_read="30", FAKE_pingpong="10")
        out, _ = self.run_all("size", "--ms", "1")
        with open(os.path.join(out, "size.json"), encoding="utf-8") as record:
            reads = [row for row in json.load(record)["rows"] if row["line"] == "read, TCP"]
        self.assertEqual({row["ratio"] for row in reads}, {3})
        self.assertIn("work=pingpong", reads[0]["ratio_to"])

    def test_many_connections_are_a_suite_of_their_own(self):
        self.write("scale", SCALE)
        out, _ = self.run_all("scale", "--rounds", "2", "--ms", "1")
        with open(os.path.join(out, "scale.json"), encoding="utf-8") as record:
            recorded = json.load(record)
        found = {row["work"]: (row["measured"], row["met"]) for row in recorded["goals"]}
        self.assertEqual(found["idle connection, memory allocated"], (9, True))
        self.assertEqual(found["idle connections, CPU"], (0.2, False))
        self.assertEqual(found["connects + disconnects, one after the other"], (1000, False))
        self.assertEqual(found["write 64 B + flush, 1 active"], (1, True))
        self.assertEqual(found["write 64 B + flush, 1024 active"], (0.693, False))
        self.assertEqual(found["write 64 B + flush beside 1000 idle"], (1.05, True))
        self.assertIn("revision", recorded["machine"])
        rates = [row for row in recorded["rows"] if row["case"]["work"] == "rate"]
        self.assertEqual({len(row["rounds"]) for row in rates}, {2})
        with open(self.log, encoding="ascii") as log:
            lines = log.read().split("\n")
        self.assertEqual((lines.count("rate 1 1 64 4"), lines.count("rate 16 1 64 1"), lines.count("connect 1 4")), (2, 2, 2))

    def test_perftest_is_compared_with_raw_tcp_and_acks_have_a_cost(self):
        self.write("peers/perftest.sh", PERFTEST)
        os.environ.update(FAKE_pingpong="10", FAKE_stream="10", FAKE_watch="5")
        places = {"loopback": place.Loopback(), "shm": place.Loopback("shm")}
        rows = verbs.measure(case.Program(self.folder.name), places, "/var/tmp",
                             os.path.join(self.folder.name, "peers"), 2, 1)["goals"]
        found = {row["work"]: row for row in rows}
        self.assertEqual((found["ib_send_lat, 64 B, TCP"]["measured"], found["ib_send_lat, 64 B, TCP"]["met"]), (2, False))
        self.assertEqual((found["ib_send_lat, 64 B, rings"]["measured"], found["ib_send_lat, 64 B, rings"]["met"]), (0.4, True))
        self.assertEqual((found["ib_read_bw, 64 KiB, TCP"]["measured"], found["ib_read_bw, 64 KiB, TCP"]["met"]), (0.5, False))
        shown = list(verbs.markdown(rows))
        self.assertEqual(len(shown), 2 + 16)
        self.assertRegex(shown[2], r"^\| ib_write_lat, 64 B, TCP \| .* \| NOT met \| 1.000 \| 1.000 \| 2.000 \| 4.000 \|$")
        self.assertRegex(shown[3], r"^\| ib_send_lat, 64 B, TCP \| .* \| NOT met \| 1.000 \| 1.000 \| 2.000 \|  \|$")
        self.assertRegex(shown[5], r"^\| ib_write_bw, 64 KiB, TCP \| .* \| NOT met \| 1.000 \| 1.000 \| 2.000 \|  \|$")

    def test_every_plot_is_drawn(self):
        if not shutil.which("gnuplot"):
            self.skip("gnuplot is not installed")
        out, _ = self.run_all("size", "depth", "dist", "conns", "--ms", "1", "--rounds", "1")
        for shown in plot.PLOTS.values():
            for ending in plot.FORMATS:
                self.assertGreater(os.path.getsize(os.path.join(out, f"{shown.name}.{ending}")), 1000)

    def test_a_plot_has_three_lines_at_most_and_says_which_way_is_better(self):
        known = {(point.plot, point.line) for sweep in points.SWEEPS.values() for point in sweep("full")}
        for key, shown in plot.PLOTS.items():
            self.assertLessEqual(len(shown.lines), 3)
            self.assertIn(shown.better, (plot.LOWER, plot.HIGHER))
            self.assertLessEqual({(key, line) for line in shown.lines}, known)

    def recorded(self, met):
        """Documents with marks, and a record of all suites in which each round of the guarded goals meets or
        misses them.
        """
        cases = {name: "who=" + name for name in ("ours", "disk", "limit", "mirror")}
        works = {suite: {goal for _, of, goal, *_ in readme.TIMES if of == suite} for suite in readme.SUITES}
        works["goals"] |= set(guards.GUARDS)
        for suite in readme.SUITES:
            goal_rows = [{"work": work, "goal": "< 1 us", "measured": 1.5, "met": met, "rounds": [1, 2], "rounds_met": 2 * met,
                          "cases": {name: case.key({"who": name}) for name in cases}} for work in sorted(works[suite])]
            rows = [{"case": {"who": name}, "p50_us": 12.34} for name in cases]
            self.write(f"results/{suite}.json", json.dumps({"machine": machine.describe(BENCH), "goals": goal_rows,
                                                            "rows": rows}))
        self.write("README.md", "before\n<!-- times: begin -->\nold\n<!-- times: end -->\nafter\n")
        self.write("bench/README.md", "<!-- bench: begin -->\n<!-- bench: end -->\n")
        readme.write(self.folder.name, os.path.join(self.folder.name, "results"))
        with open(os.path.join(self.folder.name, "README.md"), encoding="utf-8") as front, \
                open(os.path.join(self.folder.name, "bench/README.md"), encoding="utf-8") as goals_page:
            return front.read(), goals_page.read()

    def test_the_readme_gets_times_and_keeps_the_rest(self):
        front, _ = self.recorded(True)
        self.assertRegex(front, r"^before\n<!-- times: begin -->\n\|[^o]")
        self.assertEqual(front.count(" 12.3 "), 2 * len(readme.TIMES) - 1)
        self.assertTrue(front.endswith("<!-- times: end -->\nafter\n"))
        self.assertNotIn("old", front)

    def test_a_goal_that_a_test_guards_leaves_the_table_until_it_is_missed(self):
        _, page = self.recorded(True)
        for work, test in guards.GUARDS.items():
            self.assertIn(f"| {work} | < 1 us | 1.500 | `{test}` |", page)
        _, page = self.recorded(False)
        for work in guards.GUARDS:
            self.assertIn(f"| {work} | < 1 us | 1.500 | 1.000 .. 2.000 | NOT met |", page)

    def test_the_tests_that_guard_goals_exist(self):
        # If the test ran in the build folder itself, ctest would overwrite the log of the run that
        # this test belongs to.
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/CTestTestfile.cmake", "w", encoding="utf-8") as tests:
                tests.write(f'subdirs("{os.environ["RPMA_BINARY"]}")\n')
            listed = subprocess.run(["ctest", "--test-dir", folder, "-N"], capture_output=True, text=True,
                                    check=True).stdout
        # Bounds of instruction counts hold for one compiler and its options.
        missing = {test for test in guards.GUARDS.values() if f": {test}\n" not in listed}
        self.assertLessEqual(missing, set(os.environ["RPMA_NOT_COUNTED"].split()))

    def test_namespaces_are_gone_after_the_run(self):
        veth = place.Veth(9000)
        try:
            with veth:
                named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
                self.assertIn(veth.tgt_ns, named)
                mtu = subprocess.run([*veth.target.split(), "cat", "/sys/class/net/v0/mtu"],
                                     capture_output=True, text=True, check=True).stdout
                self.assertEqual(mtu.strip(), "9000")
        except OSError as reason:
            self.skip(f"no network namespaces here: {reason}")
        named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(veth.tgt_ns, named)
        self.assertNotIn(veth.ini_ns, named)


if __name__ == "__main__":
    unittest.main()
