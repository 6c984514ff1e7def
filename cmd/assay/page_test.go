package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pageBlock is a fenced block of a page: commands, a file that the reader writes, or
// what the commands before it print.
type pageBlock struct {
	line int // of its text in the page
	kind string
	file string
	text string
}

// pageBlocks are the fenced blocks of a page, in order.
func pageBlocks(page string) ([]pageBlock, error) {
	var blocks []pageBlock
	var open *pageBlock
	for i, line := range strings.Split(page, "\n") {
		switch {
		case !strings.HasPrefix(line, "```"):
			if open != nil {
				open.text += line + "\n"
			}
		case open != nil:
			blocks = append(blocks, *open)
			open = nil
		default:
			open = &pageBlock{line: i + 2}
			open.kind, open.file, _ = strings.Cut(strings.TrimPrefix(line, "```"), " ")
			if open.file == "" && open.kind != "sh" && open.kind != "text" {
				return nil, fmt.Errorf("line %d: %q: want commands (sh), what they print (text), or a file's name", i+1, line)
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.line)
	}
	return blocks, nil
}

// printed holds what a command printed against what the page shows: its lines are there,
// in this order; blanks are alike, and … is anything.
func printed(output, shown string) error {
	lines := strings.Split(output, "\n")
	for line := range strings.Lines(shown) {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*")
		}
		want, err := regexp.Compile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(lines, want.MatchString)
		if at < 0 {
			return fmt.Errorf("the line %q is not there, or in another place:\n%s", strings.TrimSpace(line), output)
		}
		lines = lines[at+1:]
	}
	return nil
}

func TestPagesAreReadAsBlocksAndHeldAgainstWhatIsPrinted(t *testing.T) {
	blocks, err := pageBlocks("Say:\n\n```sh\necho a\necho b\n```\n```yaml f.yaml\nx: 1\n```\n")
	want := []pageBlock{{4, "sh", "", "echo a\necho b\n"}, {8, "yaml", "f.yaml", "x: 1\n"}}
	if err != nil || !slices.Equal(blocks, want) {
		t.Errorf("%+v, %v", blocks, err)
	}
	for _, bad := range []string{"```sh\necho", "```yaml\nx: 1\n```"} {
		if blocks, err := pageBlocks(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, blocks)
		}
	}
	for _, c := range []struct {
		shown string
		fits  bool
	}{
		{"a  1\nlast", true}, {"a …", true}, {"a …\nb [x] …", true}, {"…x… 2.5 end", true},
		{"last\na 1", false}, {"a", false}, {"b [x] 2x5 end", false}, {"a … b", false},
	} {
		if err := printed("a 1\nb [x]   2.5 end\nlast\n", c.shown); (err == nil) != c.fits {
			t.Errorf("%q: %v, want fits %t", c.shown, err, c.fits)
		}
	}
}

// A readersShell is the one in which the reader types the page's commands.
type readersShell struct {
	in    io.Writer
	out   *bufio.Reader
	dir   string
	count int
}

const (
	shellWait = 3 * time.Minute  // until a block prints what it should
	pageWait  = 10 * time.Minute // for the whole page
	shellMark = "=== end of the block:"
)

func newReadersShell(t *testing.T, dir string, env []string) *readersShell {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and what it runs in the background
		_ = cmd.Wait()
		_ = out.Close()
	})
	s := &readersShell{in: in, out: bufio.NewReader(out), dir: t.TempDir()}
	// A command that fails in the middle of a block is seen, whatever comes after it. The
	// shell reads its end when the test is killed, and takes along what it started.
	if _, err := io.WriteString(in, "set -o pipefail\ntrap failed=1 ERR\ntrap 'kill -KILL 0' EXIT\n"); err != nil {
		t.Fatal(err)
	}
	// a block that hangs ends with the shell, and reading its output with it
	hangs := time.AfterFunc(pageWait, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() { hangs.Stop() })
	return s
}

// run types a block and returns what it printed; ok is false when a command failed.
func (s *readersShell) run(text string) (output string, ok bool, err error) {
	s.count++
	file := filepath.Join(s.dir, fmt.Sprintf("%d.sh", s.count))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", false, err
	}
	if _, err := fmt.Fprintf(s.in, "failed=0; . '%s' </dev/null; printf '\\n%s %%s\\n' $failed\n", file, shellMark); err != nil {
		return "", false, err
	}
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return b.String() + line, false, fmt.Errorf("the shell ended: %w", err)
		}
		if failed, end := strings.CutPrefix(line, shellMark+" "); end {
			return b.String(), strings.TrimSpace(failed) == "0", nil
		}
		b.WriteString(line)
	}
}
