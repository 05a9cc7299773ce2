"""The checker finds what is wrong with a room's calls, and nothing in what is right."""

import unittest

import checks
from stories import BEGIN, Case, Story


class RoomTests(Case):
    """Calls one after the other, and beside one another."""

    def test_a_right_history_passes(self):
        story = self.begun()
        story.get(2, title="one")
        story.call("like", story.room(2, title="one", likes=3), asked={"count": 3})
        story.get(2, title="one", likes=3)
        story.read()
        self.assertRight(story)

    def test_a_stale_read_is_found(self):
        story = self.begun()
        story.get(1)
        story.read()
        self.assertWrong(story, "room ash", "no order of the calls explains their answers", "its version is that of event 1, expected 2")

    def test_a_read_beside_the_change_may_see_either(self):
        for number, title in ((1, ""), (2, "one")):
            story = Story()
            story.create()
            patch = story.patch("one", 2)
            story.get(number, title=title, start=patch["start"] + 1, end=patch["end"] - 1)
            story.read()
            self.assertRight(story)

    def test_reads_beside_the_change_see_it_in_one_order(self):
        story = Story()
        story.create()
        patch = story.patch("one", 2)
        story.get(2, title="one", start=patch["start"] + 1, end=patch["start"] + 3)
        story.get(1, start=patch["start"] + 4, end=patch["end"] + 50)
        story.read()
        self.assertWrong(story, "no order of the calls explains their answers")

    def test_a_lost_update_is_found(self):
        story = self.begun()
        story.call("like", story.room(2, title="one", likes=1), asked={"count": 1})
        story.call("like", story.room(2, title="one", likes=1), asked={"count": 1})
        story.read()
        self.assertWrong(story, "its likes is 1, expected 2")

    def test_an_update_without_its_event_is_found(self):
        story = self.begun()
        story.call("patch", story.room(3, title="two"), asked={"title": "two"})
        story.read()
        self.assertWrong(story, "no order of the calls explains the feed's events", "the feed has no event room.updated (number 3)")

    def test_an_effect_of_a_refused_call_is_found(self):
        story = self.begun()
        refusal = {"type": "precondition_failed", "field": "If-Match"}
        story.call("patch", None, 412, asked={"title": "two"}, error=refusal, ifMatch="zz.1")
        story.get(2, title="two")
        story.read()
        self.assertWrong(story, "its title is 'two', expected 'one'")

    def test_an_event_of_a_refused_call_is_found(self):
        story = self.begun()
        entry = story.call("patch", None, 400, asked={"invalid": "title"}, error={"type": "invalid"})
        story.event("room.updated", 3, entry["start"] + 5, changed=["title"])
        story.read()
        self.assertWrong(story, "the feed has events after that which no call explains")

    def test_a_call_for_what_cannot_be_is_refused(self):
        story = self.begun()
        story.call("patch", story.room(2, title="one"), asked={"invalid": "title"})
        story.read()
        self.assertWrong(story, "was not refused for that")

    def test_a_refusal_that_nothing_asks_for_is_found(self):
        story = self.begun()
        story.call("patch", None, 404, error={"type": "not_found", "field": "roomId"}, asked={"title": "two"})
        story.read()
        self.assertWrong(story, "it was refused (404 not_found), expected to succeed")

    def test_two_rooms_of_one_id_are_found(self):
        story = self.begun()
        story.call("create", story.room(3, title="", instance=2), 201, asked={"title": "", "neverStarted": 300_000, "retention": 0})
        story.read()
        self.assertWrong(story, "it was answered 201, expected 409")

    def test_the_smallest_part_is_shown(self):
        story = self.begun()
        for _ in range(50):
            story.get(2, title="one")
        story.get(1)
        for _ in range(50):
            story.get(2, title="one")
        story.read()
        violation = checks.check(story.entries())[0]
        self.assertLess(len(violation.lines), 8, violation)
        self.assertIn("title 'one'", violation.lines[0])


class LostTests(Case):
    """Calls whose answer was lost."""

    def test_it_may_have_been_carried_out_or_not(self):
        for is_done in (False, True):
            story = self.begun()
            entry = story.call("patch", status=None, asked={"title": "two"})
            if is_done:
                story.event("room.updated", 3, entry["start"] + 5, changed=["title"])
            story.kill()
            story.get(3 if is_done else 2, title="two" if is_done else "one")
            story.read()
            self.assertRight(story)

    def test_its_effect_cannot_come_and_go(self):
        story = self.begun()
        story.call("like", status=None, asked={"count": 1})
        story.get(2, title="one", likes=1)
        story.get(2, title="one", likes=0)
        story.read()
        self.assertWrong(story, "its likes is 0, expected 1")

    def test_it_has_no_effect_after_its_server_was_killed(self):
        story = self.begun()
        story.call("like", status=None, asked={"count": 1})
        story.kill()
        story.get(2, title="one")
        story.now += 500
        story.get(2, title="one", likes=1)
        story.read()
        self.assertWrong(story, "its likes is ")

    def test_what_was_answered_is_there_after_a_kill(self):
        story = self.begun()
        story.call("like", story.room(2, title="one", likes=1), asked={"count": 1})
        story.kill()
        story.get(2, title="one", likes=0)
        story.read()
        self.assertWrong(story, "its likes is 0, expected 1")


class TimeTests(Case):
    """Deadlines."""

    def made(self):
        """A room that expires a second after it was made."""
        story = Story()
        asked = {"title": "", "neverStarted": 1_000, "retention": 60_000}
        story.call("create", story.room(1, neverStarted=1_000, expiresAt=BEGIN + 1_010), 201, asked=asked)
        story.event("room.created", 1, BEGIN + 10)
        return story

    def expired(self, story, at):
        story.event("room.expired", 2, at, state="expired", reason="neverStarted", by="deadline", **{"from": "created"})
        return story.room(
            2, state="expired", stateReason="neverStarted", since=at, endedAt=at, expiresAt=at + 60_000, neverStarted=1_000)  # fmt: skip

    def test_a_room_expires_at_its_time(self):
        story = self.made()
        story.now = BEGIN + 1_100
        story.call("get", self.expired(story, BEGIN + 1_012))
        story.read()
        self.assertRight(story)

    def test_a_room_that_expires_before_its_time_is_found(self):
        story = self.made()
        story.now = BEGIN + 700
        story.call("get", self.expired(story, BEGIN + 650))
        story.read()
        self.assertWrong(story, "room ash", "expire")

    def test_a_change_after_the_time_is_found(self):
        story = self.made()
        story.now = BEGIN + 1_500
        entry = story.call("patch", story.room(2, title="late", neverStarted=1_000, expiresAt=BEGIN + 1_010), asked={"title": "late"})
        story.event("room.updated", 2, entry["start"] + 5, changed=["title"])
        story.read()
        self.assertWrong(story, "(expire) comes first")

    def test_a_deadline_that_is_never_applied_is_found(self):
        story = self.made()
        story.now = BEGIN + 60_000
        story.get(1, neverStarted=1_000, expiresAt=BEGIN + 1_010)
        story.read()
        self.assertWrong(story, "has not been applied")


class MemberTests(Case):
    """Members, and who is kept out."""

    def joined(self):
        story = Story()
        story.create()
        entry = story.call("join", None, asked={"user": "ann", "nick": "a"})
        story.event("member.join", 2, entry["start"] + 5, userId="ann", nick="a")
        return story

    def kicked(self):
        story = self.joined()
        entry = story.call("kick", None, asked={"user": "ann", "ms": 1_000})
        story.event("member.kick", 3, entry["start"] + 5, userId="ann", nick="a")
        return story

    def test_members_are_listed(self):
        story = self.joined()
        story.call("members", {"total": 1, "members": [["ann", "a"]]})
        story.read()
        self.assertRight(story)

    def test_a_member_that_is_not_listed_is_found(self):
        story = self.joined()
        story.call("members", {"total": 0, "members": []})
        story.read()
        self.assertWrong(story, "it shows [] (total 0)")

    def test_a_kick_keeps_out_until_its_time(self):
        story = self.kicked()
        story.call("join", None, 409, asked={"user": "ann", "nick": "b"}, error={"type": "conflict", "field": "userId"})
        story.now += 1_100
        entry = story.call("join", None, asked={"user": "ann", "nick": "b"})
        story.event("member.join", 4, entry["start"] + 5, userId="ann", nick="b")
        story.read()
        self.assertRight(story)

    def test_one_who_comes_back_too_early_is_found(self):
        story = self.kicked()
        entry = story.call("join", None, asked={"user": "ann", "nick": "b"})
        story.event("member.join", 4, entry["start"] + 5, userId="ann", nick="b")
        story.read()
        self.assertWrong(story, "ann is kept out until")


class BanTests(Case):
    """Forbidden streams, with and without a room."""

    def banned(self, seconds=60):
        """A room whose stream is forbidden."""
        story = Story()
        story.create()
        until = BEGIN + seconds * 1_000
        entry = story.call("ban", {"until": until, "reason": "no"}, asked={"until": until, "reason": "no"})
        story.event("stream.forbidden", 2, entry["start"] + 5, state="forbidden", reason="forbidden")
        story.event("room.forbidden", 3, entry["start"] + 5, state="forbidden", reason="forbidden", **{"from": "created"})
        return story, until

    def shown(self, story, until, **changes):
        ban = {"state": "forbidden", "stateReason": "forbidden", "forbidReason": "no", "isForbidden": True, "forbiddenUntil": until}
        return story.room(3, **{**ban, "expiresAt": until, **changes})

    def listed(self, story, bans):
        story.call("bans", {"total": len(bans), "count": len(bans), "next": None, "rooms": bans}, room=None)

    def test_a_ban_is_seen_everywhere(self):
        story, until = self.banned()
        story.call("get", self.shown(story, until))
        self.listed(story, {"ash": {"until": until, "reason": "no"}})
        story.read()
        self.assertRight(story)

    def test_a_ban_begins_in_whole_milliseconds(self):
        for asked in (None, 200):
            story = Story()
            story.create()
            start = story.now + 1.9
            until = int(start) + 60_000
            answer = {"until": until, "reason": "no"} if asked else None
            story.call("ban", answer, asked, start, start + 5, asked={"ms": 60_000, "reason": "no"})
            for number, kind in ((2, "stream.forbidden"), (3, "room.forbidden")):
                story.event(kind, number, int(start), state="forbidden", reason="forbidden", **{"from": "created"})
            story.call("get", self.shown(story, until))
            story.read()
            self.assertRight(story)

    def test_a_ban_that_is_not_seen_is_found(self):
        story, _ = self.banned()
        story.get(3)
        story.read()
        self.assertWrong(story, "its state is 'created', expected 'forbidden'")
        story, _ = self.banned()
        self.listed(story, {})
        story.read()
        self.assertWrong(story, "its stream is forbidden and not in the list")

    def test_a_ban_outlives_its_room(self):
        for is_kept in (True, False):
            story, until = self.banned()
            entry = story.call("delete", None)
            story.event("room.closed", 4, entry["start"] + 5, state="closed", reason="closed", **{"from": "forbidden"})
            story.event("room.deleted", 5, entry["start"] + 5, state="closed", reason="closed")
            self.listed(story, {"ash": {"until": until, "reason": "no"}} if is_kept else {})
            story.read()
            self.assertRight(story) if is_kept else self.assertWrong(story, "its stream is forbidden and not in the list")

    def test_a_ban_that_is_over_before_its_time_is_found(self):
        story, until = self.banned()
        story.now = BEGIN + 10_000
        at = story.now - 100
        story.event("stream.resumed", 4, at, state="created", reason="resumeTime", by="deadline")
        story.event("room.unforbidden", 5, at, state="created", reason="resumeTime", by="deadline", **{"from": "forbidden"})
        story.call("get", story.room(5, stateReason="resumeTime", since=at))
        story.read()
        self.assertWrong(story, "room ash", "its version is that of event 5, expected 3")

    def test_a_ban_whose_end_passed_on_the_way_may_be_refused(self):
        for until, is_right in ((BEGIN + 30, True), (BEGIN + 5_000, False)):
            story = self.begun()
            refusal = {"type": "invalid", "field": "forbiddenUntil"}
            story.call("ban", None, 400, asked={"until": until, "reason": "no"}, error=refusal)
            story.read()
            self.assertRight(story) if is_right else self.assertWrong(story, "it was refused (400 invalid)")


class ListTests(Case):
    """Lists: each room on its own."""

    def listed(self, story, rooms, states=()):
        answer = {"total": len(rooms), "count": len(rooms), "next": None, "rooms": rooms}
        story.call("list", answer, asked={"states": list(states)}, room=None)
        story.read()
        return story

    def test_a_list_agrees_with_the_rooms(self):
        story = self.begun()
        self.assertRight(self.listed(story, {"ash": story.room(2, title="one")}, ["created"]))
        self.assertRight(self.listed(self.begun(), {}, ["closed"]))

    def test_a_room_that_is_missing_is_found(self):
        self.assertWrong(self.listed(self.begun(), {}), "it is not in the list")

    def test_a_room_of_another_state_is_found(self):
        story = self.begun()
        self.assertWrong(self.listed(story, {"ash": story.room(2, title="one")}, ["closed"]), "expected it not to be")


if __name__ == "__main__":
    unittest.main()
