"""The check of messages finds those that no test provokes."""

import pathlib
import tempfile
import unittest

import check_messages


class CheckMessages(unittest.TestCase):
    def problems(self, source, *, unit="", e2e="", exceptions="", explained="", more=""):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for path, text in {"src/a/a.cc": source, "src/a/a_test.cc": unit, "tests/e2e/a_test.py": e2e,
                               check_messages.EXCEPTIONS: exceptions, check_messages.EXPLANATIONS: explained}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            listed = check_messages.list_of(list(check_messages.messages_of(root)), check_messages.no_messages(root))
            (root / check_messages.LIST).write_text(listed + more)
            return list(check_messages.problems_of(root))

    def test_a_message_without_a_test_is_found_with_its_place(self):
        problems = self.problems('\n\nint a = Fail("cannot wind the clock: it is broken");')
        self.assertEqual(problems, ["src/a/a.cc:3: no test provokes: cannot wind the clock: it is broken"])

    def test_words_in_a_test_of_either_language_are_enough(self):
        source = 'int a = Fail("cannot wind " "the clock: it is broken; buy another");'
        self.assertEqual(self.problems(source, unit='EXPECT_EQ(f(), "wind the clo" "ck: it");'), [])
        self.assertEqual(self.problems(source, e2e='x(f"a: {b} cannot wind the clock")'), [])
        self.assertEqual(self.problems(source, e2e='x(b"cannot wind the")'), [])
        self.assertEqual(len(self.problems(source, e2e="# cannot wind the clock\n")), 1)

    def test_words_that_another_message_has_too_are_not_enough(self):
        source = 'int a = F("cannot wind the clock: it is gone"); int b = F("cannot wind the clock: it is broken by you");'
        problems = self.problems(source, e2e='x("cannot wind the clock")')
        self.assertEqual(len(problems), 2)
        self.assertEqual(self.problems(source, e2e='x("clock: it is gone")'), problems[1:])

    def test_what_a_program_puts_in_is_left_open(self):
        source = 'int a = F("cannot open " + name + " of the clock: " + why);'
        self.assertEqual(self.problems(source, e2e=r'x(r"cannot open \w+ of the clock: .*")'), [])
        self.assertEqual(len(self.problems(source, e2e='x("cannot open clock")')), 1)

    def test_short_ones_need_all_their_words(self):
        self.assertEqual(self.problems('int a = F("cannot wind " + name);', e2e='x("cannot wind it")'), [])
        self.assertEqual(len(self.problems('int a = F("cannot wind " + name);', e2e='x("cannot open")')), 1)

    def test_a_remedy_makes_a_message_and_a_full_stop_a_help(self):
        self.assertEqual(len(self.problems('int a = F("the clock has stopped; wind it");')), 1)
        self.assertEqual(self.problems('int a = F("Winds the clock; 1 when not said.");'), [])
        self.assertEqual(self.problems('// "cannot wind the clock"\n#error "cannot wind the clock"\n'), [])

    def test_exceptions_need_a_reason_and_are_needed(self):
        source = 'int a = Fail("cannot wind the clock: it is broken");'
        self.assertEqual(self.problems(source, exceptions="# There is no clock.\ncannot wind the clock\n"), [])
        self.assertEqual(len(self.problems(source, exceptions="cannot wind the clock\n")), 1)
        self.assertEqual(len(self.problems("", exceptions="# There is no clock.\ncannot wind the clock\n")), 1)

    def test_the_list_of_all_messages_is_that_of_the_sources(self):
        self.assertEqual(self.problems(""), [])
        self.assertIn("--write . writes it", self.problems("", more="- `a message of last year`\n")[0])

    def test_only_what_is_said_is_explained(self):
        source = 'int a = F("cannot wind " + name + ": it is broken");'
        for explained, count in (("| `cannot wind ...: it is broken` | it is |\n", 0), ("| `cannot wind ...: it is gone` | it is |\n", 1)):
            self.assertEqual(len(self.problems(source, e2e='x("it is broken")', explained=explained)), count)


if __name__ == "__main__":
    unittest.main()
