package chdb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// lastLines is how much of the child's stderr is kept for the report of its end.
const lastLines = 50

// killWait is how long a child may take to die after its own deadline.
const killWait = 2 * time.Second

// A process is one life of the child.
type process struct {
	cfg      Config
	log      *slog.Logger
	cmd      *exec.Cmd
	token    string
	stderr   tail
	answered bool
}

func (c *Child) newProcess(socket *os.File, token string) *process {
	cmd := exec.Command(c.binary, "-inherit", "-path", c.clickhousePath(), "-lib", c.library,
		"-queue", strconv.Itoa(c.cfg.Queue), "-max-memory", strconv.FormatInt(c.cfg.MaxMemory, 10),
		"-max-time", c.cfg.MaxTime.String(), "-stop-wait", c.cfg.StopWait.String())
	cmd.Env = environment()
	cmd.Dir = c.cfg.DataDir
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = killWait
	return &process{cfg: c.cfg, log: c.log, cmd: cmd, token: token}
}

// report is the child's one line on stdout (engine.Report, which must not be
// imported here: it would bring the library's loader into assay).
type report struct {
	Library string `json:"library"`
	Version string `json:"version"`
	Error   string `json:"error"`
}

// run starts the child, calls ready once it answers, and returns when it has
// ended: by itself, or because ctx did. The error says how it ended.
func (p *process) run(ctx context.Context, ready func(pid int)) error {
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, stdoutW := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = stdoutW, &p.stderr
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, fs.ErrNotExist) && isFile(p.cmd.Path) == nil {
			// The file is there; what is missing is the loader that it names.
			return fmt.Errorf("start %s: this machine's C library is not glibc, which the embedded ClickHouse needs: name a ClickHouse server in ASSAY_CLICKHOUSE_ADDR: %w", p.cmd.Path, err)
		}
		return fmt.Errorf("start %s: %w", p.cmd.Path, err)
	}
	exited := make(chan error, 1)
	reports := make(chan report, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		err := p.cmd.Wait()
		_ = stdoutW.Close()
		exited <- err
	})
	read := make(chan struct{})
	watching.Go(func() {
		defer close(read)
		readReport(stdout, reports)
	})
	defer watching.Wait()

	// A child that has died already shows in exited.
	_, _ = io.WriteString(stdin, p.token+"\n")
	starting := time.NewTimer(p.cfg.StartWait)
	defer starting.Stop()
	for {
		select {
		case r := <-reports:
			if err := p.take(r); err != nil {
				p.kill(exited)
				return err
			}
			starting.Stop()
			reports = nil
			ready(p.cmd.Process.Pid)
		case err := <-exited:
			// Its last line may have come at the same moment and says more.
			<-read
			select {
			case r := <-reports:
				if err := p.take(r); err != nil {
					return err
				}
			default:
			}
			return exitError(err)
		case <-starting.C:
			p.kill(exited)
			return fmt.Errorf("no answer within %s of the start", p.cfg.StartWait)
		case <-ctx.Done():
			p.stop(stdin, exited)
			return ctx.Err()
		}
	}
}

// take notes that the child answered, unless what it says is why it cannot serve.
func (p *process) take(r report) error {
	switch {
	case r.Error != "":
		return errors.New(r.Error)
	case r.Library != LibraryVersion:
		return fmt.Errorf("%s is version %q of the engine, this assay is built for %s: %s", p.cfg.Library, r.Library, LibraryVersion, nextStep)
	}
	p.answered = true
	return nil
}

// stop asks the child to end by closing its stdin, and insists after its
// deadline.
func (p *process) stop(stdin io.Closer, exited <-chan error) {
	_ = stdin.Close()
	select {
	case err := <-exited:
		if err != nil {
			p.log.Warn("embedded clickhouse did not end in peace", "err", err)
		}
	case <-time.After(p.cfg.StopWait + killWait):
		p.log.Warn("embedded clickhouse was killed", "waited", p.cfg.StopWait+killWait)
		p.kill(exited)
	}
}

func (p *process) kill(exited <-chan error) {
	_ = p.cmd.Process.Kill()
	<-exited
}

// readReport passes on the first line of the child and swallows the rest: the
// engine prints there as well, and a full pipe would stop it.
func readReport(stdout io.Reader, reports chan<- report) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		var r report
		if json.Unmarshal(line, &r) == nil && (r.Error != "" || r.Library != "") {
			reports <- r
			break
		}
		if err != nil {
			return
		}
	}
	_, _ = io.Copy(io.Discard, lines)
}

func exitError(err error) error {
	if err == nil {
		return errors.New("the child ended by itself")
	}
	return fmt.Errorf("the child ended: %w", err)
}

// tail keeps the last lines written to it.
type tail struct {
	mu      sync.Mutex // guards the fields below
	kept    []string
	partial []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		if c != '\n' {
			t.partial = append(t.partial, c)
			continue
		}
		t.kept = append(t.kept, string(t.partial))
		t.partial = t.partial[:0]
	}
	if n := len(t.kept) - lastLines; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	return len(b), nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append([]string(nil), t.kept...)
	if len(t.partial) > 0 {
		all = append(all, string(t.partial))
	}
	return all
}
