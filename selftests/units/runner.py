#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The runner of the tests: declarations, placement, verdicts, flaky programs; with a false lab.

test: tier=check where=root seconds=3
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import types
import unittest

RUN = pathlib.Path(__file__).resolve().parent.parent / "run"
loader = importlib.machinery.SourceFileLoader("run", str(RUN))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
sys.modules["run"] = run
sys.dont_write_bytecode = True
loader.exec_module(run)

OPTIONS = {"tier": "all", "kernel": None, "iommu": None, "coverage": False, "tests": [], "full": False}


def options(**given):
    """Options as the command line would give them."""
    return types.SimpleNamespace(**{**OPTIONS, **given})


def verdicts(text, status=0, in_guest=False):
    """(id, result) of each verdict of a program's output."""
    tap = run.Tap(in_guest)
    for line in text.splitlines():
        tap.line(line)
    return [(v.id, v.result) for v in tap.end(status)]


class TapTest(unittest.TestCase):
    """Output of one program."""

    def test_good(self):
        self.assertEqual(verdicts("ok 1 - a/b: fine\nok 2 - c: later # SKIP no board\n1..2"),
                         [("a/b", "passed"), ("c", "skipped")])

    def test_a_verdict_is_missing(self):
        self.assertEqual(verdicts("1..2\nok 1 - a: fine")[-1], ("end", "failed"))

    def test_no_verdict(self):
        self.assertEqual(verdicts("1..0"), [("end", "failed")])

    def test_a_crash_after_good_verdicts(self):
        self.assertEqual(verdicts("1..1\nok 1 - a: fine", 139)[-1], ("end", "failed"))

    def test_all_skipped(self):
        self.assertEqual(verdicts("1..1\nok 1 - a: fine # SKIP no", 4), [("a", "skipped")])

    def test_bail_out(self):
        self.assertEqual(verdicts("Bail out! it hangs", 1), [("bail-out", "failed")])

    def test_a_skip_of_what_the_guest_has(self):
        text = "1..1\nok 1 - a: x # SKIP no software FPGA"
        self.assertEqual(verdicts(text, 0, True), [("a", "failed")])
        self.assertEqual(verdicts(text, 0, False), [("a", "skipped")])

    def test_notes_stay_with_their_verdict(self):
        tap = run.Tap(False)
        for line in ("# before", "not ok 1 - a: x", "# after", "ok 2 - b: y"):
            tap.line(line)
        self.assertEqual(tap.verdicts[0].notes, ["# before", "# after"])


class PlaceTest(unittest.TestCase):
    """Assignment of programs to guests."""

    def place(self, given=None, **keys):
        """(kernel, iommu, needs) of the guests of one test."""
        test = run.Test("x", "selftests/driver/x.c", ["x"], where="guest", **keys)
        return sorted((j.kernel, j.iommu, j.needs) for j in run.place([test], given or options()))

    def test_check_has_the_newest_only(self):
        self.assertEqual(self.place(options(tier="check"), kernel="each,debug", iommu="both"),
                         [("newest", "off", "plain"), ("newest", "on", "plain")])

    def test_each(self):
        self.assertEqual([g[0] for g in self.place(kernel="each,debug", iommu="on")],
                         ["6.1", "6.12", "newest"])

    def test_both_is_the_newest_only(self):
        keys = {"kernel": "each,debug", "iommu": "both"}
        self.assertEqual([g[0] for g in self.place(**keys)], ["6.1", "6.12", "newest", "newest"])
        self.assertEqual([g[0] for g in self.place(options(tier="nightly"), **keys)],
                         ["6.1", "6.1", "6.12", "6.12", "debug", "newest", "newest"])

    def test_any_is_one(self):
        self.assertEqual(len(self.place()), 1)

    def test_needs(self):
        self.assertEqual([g[2] for g in self.place(needs="switch,gpu", iommu="off")], ["gpu", "switch"])

    def test_one_test_alone(self):
        self.assertEqual(self.place(options(tests=["x"]), iommu="both"), [("newest", "on", "plain")])

    def test_a_kernel_has_its_own_declarations(self):
        tests = [run.Test("x", "", ["x"], kernel=k) for k in ("any,debug", "arm64", "rt")]
        for kernel, found in (("arm64", ["arm64"]), ("newest", ["any,debug"]), ("6.1", ["any,debug", "arm64", "rt"])):
            given = options(tests=["x"], kernel=kernel)
            self.assertEqual([t.kernel for t in run.chosen(tests, given)], found)

    def test_any_joins_the_guest_with_less_to_do(self):
        tests = [run.Test(n, "", [n], where="guest", iommu=i, seconds=s)
                 for n, i, s in (("a", "on", 50), ("b", "off", 20), ("c", "any", 10))]
        by_iommu = {j.iommu: [t.name for t in j.tests] for j in run.place(tests, options())}
        self.assertEqual(by_iommu, {"on": ["a"], "off": ["b", "c"]})

    def test_a_long_guest_is_split(self):
        tests = [run.Test(f"t{n}", "", ["x"], where="guest", iommu="on", seconds=100) for n in range(12)]
        jobs = run.place(tests, options())
        self.assertEqual(sorted(t.name for j in jobs for t in j.tests), sorted(t.name for t in tests))
        self.assertEqual(len(jobs), 4)


class IdTest(unittest.TestCase):
    """Programs of which one test is requested."""

    def requested(self, text, *wanted):
        """(id, result) of the verdicts that count, and the words of those that failed."""
        runner = run.Runner(options(tests=[f"x:{w}" for w in wanted]), [], None)
        tap = run.Tap(False)
        for line in text.splitlines():
            tap.line(line)
        made = runner.requested(run.Test("x", "x.sh", ["x.sh"]), tap.end(0))
        return [(v.id, v.result) for v in made], " ".join(v.text for v in made if v.result == "failed")

    MADE = "ok 1 - a/b: x\nok 2 - a.2: x\nnot ok 3 - other: x\n1..3"

    def test_a_table_and_a_repeated_id(self):
        self.assertEqual(self.requested(self.MADE, "a")[0], [("a/b", "passed"), ("a.2", "passed")])

    def test_a_pattern(self):
        self.assertEqual(self.requested(self.MADE, "oth*")[0], [("other", "failed")])

    def test_unknown(self):
        made, words = self.requested(self.MADE, "othr")
        self.assertEqual(made, [("othr", "failed")])
        self.assertIn('x has no id "othr"; nearest: other;', words)

    def test_one_of_two_is_unknown(self):
        self.assertEqual(self.requested(self.MADE, "a", "zzz")[0][-1], ("zzz", "failed"))

    def test_a_program_that_ends_early_is_no_unknown_id(self):
        self.assertEqual(self.requested("ok 1 - a: x\n1..2", "b")[0], [("a", "passed"), ("end", "failed")])

    def test_each_script_has_ids_to_list(self):
        for test in run.find_tests():
            if not test.selects():
                self.assertTrue(run.list_ids(test), test.source)


class RunTest(unittest.TestCase):
    """Jobs, in a lab that is a shell script."""

    def outcome(self, script, again=None, tier="check"):
        """Exit status and totals; script and again: commands of the first and the second guest."""
        with tempfile.TemporaryDirectory() as folder:
            first = pathlib.Path(folder, "first")
            lab = pathlib.Path(folder, "lab")
            lab.write_text(f"#!/bin/sh\nif [ -e {first} ]; then\n{again or script}\nfi\n>{first}\n{script}\n",
                           encoding="ascii")
            lab.chmod(0o755)
            tests = [run.Test(n, "", [n], where="guest", iommu="on") for n in ("a", "b")]
            jobs = run.place(tests, options(tier=tier))
            before, run.LAB = run.LAB, str(lab)
            try:
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    runner = run.Runner(options(tier=tier), jobs, pathlib.Path(folder))
                    runner.run(jobs)
                    run.write_junit(runner.outcomes, pathlib.Path(folder, "junit.xml"))
                    status = run.summary(runner, tier)
            finally:
                run.LAB = before
            return status, output.getvalue().splitlines()[-1]

    A = "echo '@@ begin a'; echo 'ok 1 - x: y'; echo 1..1; echo '@@ end a 0'\n"
    B = A.replace(" a", " b")
    BAD = "echo '@@ begin a'; echo 'not ok 1 - x: y'; echo 1..1; echo '@@ end a 1'\n"

    def test_good(self):
        self.assertEqual(self.outcome(self.A + self.B + "exit 0"), (0, "2 passed, 0 failed, 0 skipped"))

    def test_fails_twice(self):
        self.assertEqual(self.outcome(self.BAD + self.B + "exit 1", self.BAD + "exit 1"),
                         (1, "1 passed, 1 failed, 0 skipped"))

    def test_flaky(self):
        self.assertEqual(self.outcome(self.BAD + self.B + "exit 1", self.A + "exit 0")[0], 0)

    def test_flaky_is_red_in_nightly(self):
        self.assertEqual(self.outcome(self.BAD + self.B + "exit 1", self.A + "exit 0", "nightly")[0], 1)

    def test_a_finding_in_the_kernel_log_is_never_flaky(self):
        log = "echo 'lab: the kernel log has:'; echo 'lab:   BUG'; exit 100"
        self.assertEqual(self.outcome(self.A + self.B + log, self.A + self.B + "exit 0")[0], 1)

    def test_a_guest_that_dies_loses_no_program(self):
        dies = "echo '@@ begin a'; exit 101"
        self.assertEqual(self.outcome(dies, self.B + "exit 0")[0], 1)
        self.assertEqual(self.outcome(dies, self.B + self.A + "exit 0")[0], 0)

    def test_a_guest_that_runs_nothing(self):
        self.assertEqual(self.outcome("exit 101")[0], 1)


class Result(unittest.TextTestResult):
    """Prints TAP."""

    def report(self, test, good, text=""):
        """One verdict."""
        name = test.id().partition(".")[2].replace("_", "-").lower().replace("test.test-", "/")
        for line in text.splitlines():
            print("#", line)
        print(f"{'' if good else 'not '}ok {self.testsRun} - {name}: {name.partition('/')[2].replace('-', ' ')}")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.report(test, True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.report(test, False, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.report(test, False, self.errors[-1][1])


suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
result = unittest.TextTestRunner(io.StringIO(), resultclass=Result).run(suite)
print(f"1..{result.testsRun}")
sys.exit(not result.wasSuccessful())
