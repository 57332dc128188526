#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fio's network engine: a plain TCP socket, without placement, and without completions at the other end. With pingpong
# each message is answered; otherwise the messages are a stream.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "$0")/lib.sh"

peer_list() {
	local size
	{ have fio && have perl && [ "$BENCH_LINK" != shm ]; } || return 0
	for size in "${sizes[@]}"; do
		echo "who=fio work=send size=$size suites=size$([ "$size" != 64 ] || echo ,goals)"
	done
	echo "who=fio work=stream size=1048576 suites=goals"
}

peer_run() {
	local port pingpong=1 common
	have fio || skip "fio is not installed"
	case "${word[work]}" in
	send) ;;
	stream) pingpong=0 ;;
	*) fail "work=${word[work]}: there are send, stream" ;;
	esac
	port=$(free_port)
	common=(--ioengine=net --protocol=tcp --port="$port" --bs="${word[size]}" --nodelay=1 --pingpong="$pingpong"
		--time_based --size=1T --thread)
	start_target "$port" fio --name=target "${common[@]}" --rw=read --listen --runtime=30
	initiator fio --output-format=json --output="$scratch/out.json" --name=initiator "${common[@]}" --rw=write \
		--hostname="$BENCH_ADDR" --runtime="${word[ms]}ms" 2>"$scratch/initiator.log" ||
		fail "fio: $(tail -n 1 "$scratch/initiator.log")"
	finish_target
	print_line "$(perl -MJSON::PP -e '
		local $/;
		my $w = decode_json(<>)->{jobs}[0]{write};
		my ($c, $p) = ($w->{clat_ns}, $w->{clat_ns}{percentile});
		die "nothing was written\n" unless $w->{total_ios} && $w->{runtime};
		printf q("count":%d,"seconds":%.6f,"ops_s":%.1f,"bytes_s":%.1f), $w->{total_ios}, $w->{runtime} / 1e3,
			$w->{total_ios} * 1e3 / $w->{runtime}, $w->{bw_bytes};
		printf q(,"p50_us":%.3f,"p99_us":%.3f,"p999_us":%.3f,"mean_us":%.3f), (map { $p->{$_} / 1e3 }
			"50.000000", "99.000000", "99.900000"), $c->{mean} / 1e3;
	' <"$scratch/out.json")"
}

peer_main "$@"
