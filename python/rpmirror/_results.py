# SPDX-License-Identifier: BSD-3-Clause
"""Results of calls on a mapping."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import List, Optional, Tuple

from . import _library as c


@dataclass(frozen=True)
class Result:
    """The members on which a flush is durable. Bit i of a mask stands for the member in slot i."""

    seq: int
    durable_mask: int
    failed_mask: int
    flags: int

    @property
    def degraded(self) -> bool:
        """Fewer copies than configured have the flushed bytes."""
        return bool(self.flags & c.DEGRADED)

    @property
    def solo(self) -> bool:
        """Only one copy has the flushed bytes."""
        return bool(self.flags & c.SOLO)

    @property
    def local_failed(self) -> bool:
        """This host's copy lacks the flushed bytes."""
        return bool(self.flags & c.LOCAL_FAILED)

    @classmethod
    def _from(cls, raw: c.FlushResult) -> "Result":
        return cls(raw.seq, raw.durable_mask, raw.failed_mask, raw.flags)

    def _and(self, other: "Result") -> "Result":
        """The result that holds for both flushes. A flush without ranges is durable everywhere."""
        if not self.seq or not other.seq:
            return self if self.seq else other
        return Result(
            max(self.seq, other.seq),
            self.durable_mask & other.durable_mask,
            self.failed_mask | other.failed_mask,
            self.flags | other.flags,
        )


class Role(enum.IntEnum):
    READER = 0
    PRIMARY = 1
    FENCED = 2


class Health(enum.IntEnum):
    FULL = 0  # every member has all acknowledged flushes
    DEGRADED = 1  # the set serves with fewer copies than configured
    BLOCKED = 2  # flushes wait for the register or for copies
    DOWN = 3  # this mapping cannot be used any more


class Copy(enum.IntEnum):
    UNKNOWN = 0
    IN_SYNC = 1  # has every acknowledged flush
    SYNCING = 2  # is being made equal
    STALE = 3  # lacks acknowledged flushes
    FAILED = 4  # medium or write-back error


class EventType(enum.IntEnum):
    VIEW = 1  # the in-sync set has changed
    LOST = 2  # the connection to a member was lost
    SLOW = 3  # a flush took longer than slow_ms; value: microseconds
    BLOCKED = 4  # flushes wait for the register or for copies
    UNBLOCKED = 5
    LEASE_OVER = 6
    FENCED = 7
    LOCAL_FAILED = 8
    ERROR = 9  # Mapping.errors() has the details
    MISSED = 10  # the program did not take events in time; value: the number of dropped events
    VERIFIED = 11  # copies were compared; value: the number of bytes that differ
    STUCK = 12  # no progress with a member, or while flushes wait; value: the duration in ms


@dataclass(frozen=True)
class Member:
    slot: int
    name: str
    address: str
    copy: Copy
    connected: bool
    durable_seq: int
    remainder: int
    flush_p50_us: int
    flush_p99_us: int
    reason: str

    @classmethod
    def _from(cls, slot: int, raw: c.MemberState) -> "Member":
        return cls(
            slot,
            _string(raw.name),
            _string(raw.address),
            Copy(raw.copy),
            raw.connected,
            raw.durable_seq,
            raw.remainder,
            raw.flush_p50_us,
            raw.flush_p99_us,
            _string(raw.reason),
        )


@dataclass(frozen=True)
class State:
    role: Role
    health: Health
    epoch: int
    view_seq: int
    flush_seq: int
    acked_seq: int
    self_slot: int
    insync_mask: int
    config_mask: int
    min_copies: int
    lease_left_ms: int
    age_ms: Optional[int]  # None: the daemon has no information
    members: Tuple[Member, ...]  # members in used slots

    @classmethod
    def _from(cls, raw: c.State) -> "State":
        return cls(
            Role(raw.role),
            Health(raw.health),
            raw.epoch,
            raw.view_seq,
            raw.flush_seq,
            raw.acked_seq,
            getattr(raw, "self"),
            raw.insync_mask,
            raw.config_mask,
            raw.min_copies,
            raw.lease_left_ms,
            None if raw.age_ms == c.AGE_UNKNOWN else raw.age_ms,
            tuple(Member._from(i, m) for i, m in enumerate(raw.members) if m.name),
        )

    def names(self, mask: int) -> List[str]:
        """The names of the members of a mask, for instance of Result.durable_mask."""
        return [member.name for member in self.members if mask >> member.slot & 1]


@dataclass(frozen=True)
class Event:
    type: EventType
    member: Optional[int]  # the member's slot
    value: int
    time: float  # in the units of time.time()
    text: str

    @classmethod
    def _from(cls, raw: c.Event) -> "Event":
        member = None if raw.member == c.NO_MEMBER else raw.member
        return cls(EventType(raw.type), member, raw.value, raw.time_ms / 1000, _string(raw.text))


@dataclass(frozen=True)
class LocalError:
    """A part of this host's medium that failed."""

    offset: int
    length: int
    repaired: bool  # the part has the content of the last flush again
    dirty: bool  # later stores to the part are lost
    text: str

    @classmethod
    def _from(cls, raw: c.LocalError) -> "LocalError":
        return cls(raw.offset, raw.len, raw.repaired, raw.dirty, _string(raw.text))


def _string(raw: bytes) -> str:
    return raw.decode(errors="replace")
