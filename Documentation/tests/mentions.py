#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check where=host seconds=5
"""Programs, commands, options, files, targets of make, names in C and keys of JSON in the documents exist.

Everything in literals counts, whether a test runs it or not. usage.sh checks that man pages list the
options of the programs; here the man pages are the reference. "mentions.py FILE...": only these. TAP.
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
# programs of others, whose options are not checked
FOREIGN = set("""apt apt-get cat cc certtool checkpatch cmake curl dd dkms echo fio gcc git grep insmod ip ip6tables
    iptables journalctl kmodsign lspci make meson mokutil modprobe mount mpirun numactl openssl pip pkg-config ps python3
    qemu-system-x86_64 rdma setpci srun ssh strace systemctl tc udevadm virsh #SBATCH""".split())
OPTION = re.compile(r"(?<![-\w/])--[a-z][a-z0-9-]*")
FOREIGN_OPTIONS = {"--allow-run-as-root", "--kill-on-bad-exit", "--no-kill", "--oversubscribe", "--ntasks-per-node", "--system-site-packages"}
HISTORY = {"Documentation/changelog.rst"}  # also names what is gone
PLANTED = """``--no-such-option``, ``rashpactl nonsense``, ``drivers/nowhere.c``, ``rashpa_no_such_function()``::

    romulu --buffer ring0 | remu --bdf 12:34
    make nothing
    python3 -m rashpa.nowhere ring0
    {"no_such_key": 1}
    rashpa-nothing --help
    selftests/lab/lab exec --nowhere -- ls
"""


def text(path):
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


def tracked():
    return subprocess.run(["git", "ls-files"], cwd=TOP, check=True, text=True, capture_output=True).stdout.splitlines()


def literals(page, source):
    """(line, literal): the literals of a page: between back quotes, and the lines of indented or fenced blocks."""
    mark = "`" if page.endswith(".md") else "``"
    for match in re.finditer(rf"(?<!`){mark}(?!`)(.+?)(?<!`){mark}(?!`)", source, re.S):
        yield source.count("\n", 0, match.start()) + 1, " ".join(match[1].split())
    block, indent, joined, start = False, 0, "", 0
    for number, line in enumerate(source.splitlines(), 1):
        if page.endswith(".md"):
            if line.lstrip().startswith("```"):
                block = not block
                continue
        elif line.strip():
            depth = len(line) - len(line.lstrip())
            if block and depth <= indent:
                block = False
            if not block and line.rstrip().endswith("::") != bool(re.match(r"\s*\.\. [a-z-]+::", line)):
                block, indent = True, depth
                continue
        if not block:
            continue
        joined, start = joined + line.strip(), start or number
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        yield start, joined
        joined, start = "", 0


class Reference:
    """What exists."""

    def __init__(self):
        self.files = set(tracked())
        self.sources = {name for name in self.files if (TOP / name).is_file() and not (TOP / name).is_symlink() and
                        not name.endswith((".rst", "/mentions.py"))}
        self.folders = {str(folder) for name in self.files for folder in pathlib.PurePath(name).parents}
        self.options, man = {}, {}
        for name in self.files:
            if name.startswith("Documentation/man/") and name.endswith(".1"):
                man[pathlib.PurePath(name).stem] = text(name).replace("\\-", "-")
        for program, page in man.items():
            self.options[program] = set(OPTION.findall(page.replace("\\fI", " "))) | {"--help", "--version", "--usage"}
        self.commands = self.of_rashpactl(man["rashpactl"])
        self.options["lab"] = self.options_of("selftests/lab/") | {"--quick"}
        self.options["run"] = self.options_of("selftests/run")
        self.options["others"] = self.options_of("selftests/", "tools/", "Documentation/tests/")
        self.targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
        code = [name for name in self.sources if re.search(r"\.([chy]|py|sh|xsd|json|comp|cu|mk|rules|service|socket|in|map)$|Makefile|"
                                                         r"^selftests/(run|lab/[^.]*)$|Kbuild|completion", name)]
        self.code = "\n".join(text(name) for name in code)
        self.words = set(re.findall(r"\w+", self.code))

    def options_of(self, *starts):
        return {option for name in self.sources if name.startswith(starts) for option in OPTION.findall(text(name))}

    @staticmethod
    def of_rashpactl(page):
        """First words of commands: of the entries that .TP begins."""
        found = set()
        for entry in re.findall(r"^\.TP\n\.(?:B|BI|BR|IR|RB) (.*)", page, re.M):
            name = re.match(r'"?([a-z]+)', entry)
            if name:
                found.add(name[1])
        return found


def check_command(known, words):
    """Problems of one simple command."""
    while words and re.match(r"[A-Z_]+=", words[0]) or words and words[0] in ("sudo", "nice", "time", "env", "timeout", "while", "do", "then", "if", "!"):
        words = words[1:]
    if not words:
        return
    program = words[0].rsplit("/", 1)[-1].strip("()`'\"")
    rest = words[1:words.index("--", 1)] if "--" in words[1:] else words[1:]
    if program == "lab" and "--" in words:
        yield from check_command(known, words[words.index("--") + 1:])
    if program in ("mpirun", "srun", "numactl", "strace"):
        for at, word in enumerate(words):
            if word.rsplit("/", 1)[-1] in known.options:
                yield from check_command(known, words[at:])
                return
    if program == "make":
        for word in rest:
            if re.fullmatch(r"[a-z][a-z-]*", word) and word not in known.targets | {"olddefconfig"} and "-C" not in rest:
                yield f"make has no target {word}"
        return
    if program == "python3" and "-m" in rest[:2]:
        module = (rest + [""])[rest.index("-m") + 1]
        if module.startswith("rashpa"):
            path = "tools/python/" + module.replace(".", "/")
            have = [name for name in known.files if name.startswith((path + ".py", path + "/"))]
            if not have:
                yield f"no Python module {module}"
            have = {option for name in have for option in OPTION.findall(text(name))} | {"--help"}
            yield from (f"{module} has no option {option}" for option in OPTION.findall(" ".join(rest)) if option not in have)
        return
    if program in FOREIGN:
        return
    if program == "rashpactl":
        name = next((word for word in rest if not word.startswith("-")), "")
        if re.fullmatch(r"[a-z]+", name) and name not in known.commands:
            yield f"rashpactl has no command {name}"
    elif re.fullmatch(r"rashpa-[a-z-]+", program) and program not in known.options and program not in known.code:
        yield f"no program {program}"
    options = known.options.get(program)
    if options is not None:
        yield from (f"{program} has no option {option}" for option in OPTION.findall(" ".join(rest)) if option not in options)


def problems(known, page):
    source = text(page)
    everything = set().union(*known.options.values())
    for line, literal in literals(page, source):
        for command in re.split(r"\s*(?:[|;]|&&|\$\(|&$|&\s)\s*", re.split(r"\s+#\s|\s{3,}", literal)[0].lstrip("$# ")):
            try:
                words = shlex.split(command)
            except ValueError:  # a quote that ends in a later line
                words = command.split()
            if words and words[0].startswith("--"):
                yield from ((line, f"no tool has the option {option}") for option in OPTION.findall(command)
                            if option not in everything | FOREIGN_OPTIONS)
            else:
                yield from ((line, problem) for problem in check_command(known, words))
        for path in re.findall(r"(?<![\w/.$~<-])(?:tools|drivers|selftests|uapi|Documentation)/[\w./*-]*[\w*]", literal):
            below = str(pathlib.PurePath(page).parent / path)
            if not re.search(r"/[A-Z]+/|<", literal) and not any(
                    pathlib.PurePath(name).match(path) or name in (path, below) for name in known.files | known.folders):
                yield line, f"no file {path}"
        for name in re.findall(r"\bRASHPA_[A-Z0-9_]*[A-Z0-9]\b|\brashpa_[a-z0-9_]*[a-z0-9]\b", literal):
            if name not in known.words and name + "_" not in literal and not re.search(re.escape(name) + r"[*_…]", literal):
                yield line, f"no name {name} in the sources"
        for key in re.findall(r'"([a-z_][a-z0-9_]*)"\s*:', literal):
            if key not in known.words:
                yield line, f'no source has the key "{key}"'


def main():
    known = Reference()
    pages = sys.argv[1:] or sorted(name for name in known.files if name not in HISTORY and
                                   (name == "README.md" or name.endswith(".rst")))
    verdicts = []

    def ok(good, name):
        verdicts.append(good)
        print(f"{'' if good else 'not '}ok {len(verdicts)} - {name}")

    print("TAP version 13")
    with tempfile.NamedTemporaryFile("w", suffix=".rst", encoding="utf-8") as planted:
        planted.write(PLANTED)
        planted.flush()
        found = [problem for _, problem in problems(known, planted.name)]
    ok(len(found) == PLANTED.count("\n    ") + PLANTED.count("``") // 2, "planted: each of the planted mistakes is found")
    for page in pages:
        found = sorted(set(problems(known, page)))
        for line, problem in found:
            print(f"# {page}:{line}: {problem}")
        ok(not found, f"pages/{page}: programs, options, files and names in literals exist")
    print(f"1..{len(verdicts)}")
    return not all(verdicts)


if __name__ == "__main__":
    sys.exit(main())
