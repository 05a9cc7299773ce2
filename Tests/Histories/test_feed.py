"""The checker finds what is wrong with the feed, with keys, with tokens, and with a file."""

import os
import tempfile
import unittest

import checks
import history
from readers import take_frame
from stories import Case, Story


class FeedTests(Case):
    def begun(self):
        """A room with four titles, one after the other."""
        story = Story()
        story.create()
        for number in range(2, 6):
            story.patch(f"t{number}", number)
        return story

    def test_readers_that_go_on_pass(self):
        story = self.begun()
        story.read("one", 0, {1, 2}, is_complete=False, limit=2)
        story.read("one", 2, {3, 4, 5})
        story.read("two", 0)
        self.assertRight(story)

    def test_a_hole_of_one_reader_is_found(self):
        story = self.begun()
        story.read("one", 0, {1, 2, 4, 5})
        story.read("two", 0)
        self.assertWrong(story, "reader one", "an event is missing that others were told", "event 3")

    def test_an_event_that_nobody_was_told_is_found(self):
        story = self.begun()
        story.told = [event for event in story.told if event["id"] != 3]
        story.read("one", 0)
        self.assertWrong(story, "room ash", "not numbered one by one: 4 follows 2")

    def test_an_event_that_is_told_twice_is_found(self):
        story = self.begun()
        story.read("one", 0, {1, 2, 3}, is_complete=False, limit=3)
        story.read("one", 3, {3, 4, 5})
        self.assertWrong(story, "reader one", "an event was told twice")
        story = self.begun()
        story.read("one")["events"].insert(2, 1)
        self.assertWrong(story, "reader one", "an event was told twice")

    def test_two_events_of_one_change_are_found(self):
        story = self.begun()
        story.event("room.updated", 6, story.told[-1]["at"], changed=["title"])
        story.read()
        self.assertWrong(story, "the feed has events after that which no call explains")

    def test_ids_that_do_not_rise_are_found(self):
        story = self.begun()
        story.read("one")["events"][:2] = [1, 0]
        self.assertWrong(story, "reader one", "ids do not rise")

    def test_two_tales_of_one_event_are_found(self):
        story = self.begun()
        story.read("one")
        other = {**story.told[2], "data": {**story.told[2]["data"], "by": "somebody"}}
        story.told.append(other)
        self.assertWrong(story, "one id stands for two events")

    def test_a_read_that_is_behind_the_answers_is_found(self):
        story = self.begun()
        story.read("one", 0, {1, 2, 3, 4})
        story.read("two", 0)
        self.assertWrong(story, "reader one", "lacks an event that was there before", "event 5", "patch")

    def test_a_read_beside_the_change_may_lack_it(self):
        story = self.begun()
        story.read("one", 0, {1, 2, 3, 4}, start=story.calls[-1]["start"] + 1)
        story.read("two", 0)
        self.assertRight(story)

    def test_an_event_before_its_call_is_found(self):
        story = self.begun()
        story.read("one", 0, start=story.calls[-1]["start"] - 200)
        self.assertWrong(story, "reader one", "an event was told before its call was made")

    def test_an_event_that_is_gone_at_the_end_is_found(self):
        story = self.begun()
        story.read("one", 0)
        story.kill()
        story.read("final", 0, {1, 2, 3, 4})
        self.assertWrong(story, "events that were told are not there at the end", "event 5")


class KeyTests(Case):
    def liked(self, likes=1, **more):
        story = Story()
        story.create()
        self.like(story, likes, key="k", **more)
        return story

    def like(self, story, likes, **more):
        return story.call("like", story.room(1, likes=likes), asked={"count": 1}, **more)

    def test_a_repetition_gets_the_first_answer(self):
        story = self.liked()
        self.like(story, 1, key="k", replayed=True)
        story.get(1, likes=1)
        story.read()
        self.assertRight(story)

    def test_two_effects_are_found(self):
        story = self.liked()
        self.like(story, 2, key="k")
        story.read()
        self.assertWrong(story, "idempotency key", "carried out twice")

    def test_another_answer_is_found(self):
        story = self.liked()
        self.like(story, 2, key="k", replayed=True)
        story.read()
        self.assertWrong(story, "idempotency key", "two different answers")

    def test_a_lost_call_has_its_effect_once(self):
        for total in (1, 2):
            story = Story()
            story.create()
            story.call("like", status=None, asked={"count": 1}, key="k")
            story.kill()
            self.like(story, 1, key="k", replayed=True)
            story.get(1, likes=total)
            story.read()
            self.assertRight(story) if total == 1 else self.assertWrong(story, "its likes is 2, expected 1")

    def test_a_lost_call_and_its_repetition_are_one(self):
        story = Story()
        story.create()
        story.call("like", status=None, asked={"count": 1}, key="k")
        story.kill()
        # Carried out anew although the first had been, as the next look shows.
        self.like(story, 2, key="k")
        story.read()
        self.assertWrong(story, "its likes is 2, expected 1")

    def test_a_key_that_is_forgotten_is_found(self):
        story = self.liked()
        story.call("like", None, 409, asked={"count": 1}, key="k", error={"type": "wrong_state", "state": "closed"})
        story.read()
        self.assertWrong(story, "a key that had succeeded was refused later")

    def test_a_repetition_of_nothing_is_found(self):
        story = Story()
        story.create()
        self.like(story, 1, key="k", replayed=True)
        story.read()
        self.assertWrong(story, "an answer was repeated that nobody had been given")


class TokenTests(Case):
    def made(self):
        story = Story()
        story.call("token.create", {"tokenId": 7, "secret": True, "isRevoked": False}, 201, asked={"name": "t"}, room=None)
        return story

    def use(self, story, status):
        story.call("token.use", None, status, asked={"name": "t"}, room=None)

    def revoke(self, story, status=200):
        story.call("token.revoke", None, status, asked={"name": "t"}, room=None)

    def listed(self, story, *tokens):
        story.call("token.list", {"tokens": [list(token) for token in tokens]}, room=None)

    def test_a_life_passes(self):
        story = self.made()
        self.use(story, 200)
        self.listed(story, ("t", False))
        self.revoke(story)
        self.use(story, 401)
        self.listed(story, ("t", True))
        self.assertRight(story)

    def test_a_revoked_token_that_works_is_found(self):
        story = self.made()
        self.revoke(story)
        self.use(story, 200)
        self.assertWrong(story, "token t", "accepted after it had been revoked")

    def test_a_valid_token_that_is_refused_is_found(self):
        story = self.made()
        self.use(story, 401)
        self.assertWrong(story, "token t", "refused though nobody had revoked it")

    def test_a_token_that_comes_back_is_found(self):
        story = self.made()
        self.revoke(story, None)
        self.use(story, 401)
        self.use(story, 200)
        self.assertWrong(story, "token t", "accepted after it had been refused")

    def test_a_list_that_is_behind_is_found(self):
        story = self.made()
        self.listed(story)
        self.assertWrong(story, "made and is not listed")
        story = self.made()
        self.revoke(story)
        self.listed(story, ("t", False))
        self.assertWrong(story, "listed as valid after it had been revoked")

    def test_one_that_nobody_made_is_found(self):
        story = self.made()
        self.listed(story, ("t", False), ("x", False))
        self.assertWrong(story, "token x", "nobody made it")


class FileTests(Case):
    def test_a_kept_history_is_the_same(self):
        story = FeedTests().begun()
        story.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "history")
            history.write(story.entries(), path)
            self.assertEqual(history.read(path), story.entries())

    def test_what_is_no_history_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "history")
            for text, word in (("{}\n", "history:1 "), ('{"what":"end"}\n', "does not begin"), ('{"what":"begin"}\n{"what":3}\n', "history:2 ")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(ValueError, word):
                    history.read(path)

    def test_a_recording_that_was_broken_off_is_not_right(self):
        entries = Story().entries()[:-1]
        self.assertIn("broken off", str(checks.check(entries)[0]))

    def test_times_are_read(self):
        self.assertEqual(history.instant("2026-11-22T10:00:00.125Z"), 1_795_341_600_125)
        self.assertIsNone(history.instant(None))

    def test_frames_are_taken_when_they_are_whole(self):
        long = b"\x81\x7e\x01\x00" + b"x" * 256
        for size in range(len(long)):
            self.assertEqual(take_frame(long[:size]), (None, long[:size]))
        self.assertEqual(take_frame(long + b"\x8a"), ((1, b"x" * 256), b"\x8a"))
        self.assertEqual(take_frame(b"\x88\x02ab"), ((8, b"ab"), b""))


if __name__ == "__main__":
    unittest.main()
