package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/internal/interaction"
	"assay/internal/interaction/decode"
)

// decodeOptions are the flags of `assay decode`.
type decodeOptions struct {
	format   string
	source   string
	fields   map[string]string
	headers  map[string]string
	key      string
	lines    bool
	registry string
	schemas  map[string]string
}

func (a *app) decodeCommand() *cobra.Command {
	var o decodeOptions
	cmd := &cobra.Command{
		Use:   "decode FILE...",
		Short: "Show what raw messages are read as: the fields, the flags, or why not",
		Long: `Read raw messages as the stream does and print the records that come of them, without
Kafka, ClickHouse or a judge. Each FILE is the value of one message (- is standard input);
with --lines each line is one. Messages come in order, as from one partition, so that halves
of a call find each other; what still waits at the end is shown as incomplete.
Exit 1 when something could not be read.`,
		Example: `  assay decode message.json
  kcat -C -b broker:9092 -t llm.logs -c 100 | assay decode --lines - --json
  assay decode value.bin --format otlp_proto
  assay decode row.json --map expected=metadata.gold --header content-encoding=gzip
  assay decode value.avro --schema-registry http://registry:8081
  assay decode message.json --source llm.logs`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decode(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "read as this format in place of detecting it: "+strings.Join(decode.Formats(), ", "))
	f.StringVar(&o.source, "source", "", "a topic of the checks file, whose format, fields and schema registry count")
	f.StringToStringVar(&o.fields, "map", nil, "field=path: where a field stands, as in expected=metadata.gold")
	f.StringToStringVar(&o.headers, "header", nil, "name=value: a header of every message; base64:... is raw bytes")
	f.StringVar(&o.key, "key", "", "the key of every message")
	f.BoolVar(&o.lines, "lines", false, "each line is a message of its own")
	f.StringVar(&o.registry, "schema-registry", "", "address of a schema registry")
	f.StringToStringVar(&o.schemas, "schema", nil, "id=file: a schema by id or GUID: .avsc, .proto, .json or a descriptor set")
	return cmd
}

// decodeTopic is where messages come from that no topic is named for.
const decodeTopic = "file"

func (a *app) decode(ctx context.Context, paths []string, o decodeOptions) error {
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		return err
	}
	src, err := a.decodeSource(env, o)
	if err != nil {
		return err
	}
	d, err := decode.New(env.Decode, []decode.Source{src})
	if err != nil {
		return errUsage{err}
	}
	p := &decodePrinter{app: a, joiner: d.NewJoiner(src.Topic), topic: src.Topic}
	if o.key != "" {
		p.key = []byte(o.key)
	}
	for name, text := range o.headers {
		value, err := headerValue(text)
		if err != nil {
			return errUsage{fmt.Errorf("--header %s: %w", name, err)}
		}
		p.headers = append(p.headers, interaction.Header{Key: name, Value: value})
	}
	for _, path := range paths {
		if err := p.file(ctx, path, o.lines, int64(env.Decode.MaxRecord)); err != nil {
			return err
		}
	}
	// Nothing more comes, so what waits will wait for ever.
	if rest := p.joiner.Rest(); len(rest.Interactions) > 0 {
		if err := p.print("end of input", rest); err != nil {
			return err
		}
	}
	if p.bad > 0 {
		return fmt.Errorf("%d of %d messages have something that could not be read", p.bad, p.messages)
	}
	return nil
}

func headerValue(text string) ([]byte, error) {
	if encoded, ok := strings.CutPrefix(text, "base64:"); ok {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return []byte(text), nil
}

// decodeSource are the settings of the checks file's source, if one is named, with the
// flags over them.
func (a *app) decodeSource(env environment, o decodeOptions) (decode.Source, error) {
	src := decode.Source{Topic: decodeTopic}
	if o.source != "" {
		file, err := loadChecks(env.Checks)
		if err != nil {
			return src, err
		}
		found := false
		sources, err := decodeSources(file, a.environ)
		if err != nil {
			return src, errUsage{err}
		}
		for _, s := range sources {
			if s.Topic == o.source {
				src, found = s, true
			}
		}
		if !found {
			return src, errUsage{fmt.Errorf("--source %s: %s has no such topic", o.source, env.Checks)}
		}
	}
	if o.format != "" {
		src.Format = o.format
	}
	if len(o.fields) > 0 {
		merged := make(map[string]string, len(src.Fields)+len(o.fields))
		for field, path := range src.Fields {
			merged[field] = path
		}
		for field, path := range o.fields {
			merged[field] = path
		}
		src.Fields = merged
	}
	if o.registry != "" {
		src.SchemaRegistry.Address = o.registry
	}
	if len(o.schemas) > 0 {
		src.SchemaRegistry.Files = o.schemas
	}
	return src, nil
}

// A decodePrinter reads messages one after another and prints what they become.
type decodePrinter struct {
	app     *app
	joiner  *decode.Joiner
	topic   string
	key     []byte
	headers []interaction.Header

	offset   int64
	messages int
	bad      int
}

func (p *decodePrinter) file(ctx context.Context, path string, lines bool, limit int64) error {
	in, err := openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if !lines {
		// One byte over the limit is enough to be refused for it.
		value, err := io.ReadAll(io.LimitReader(in, limit+1))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return p.message(path, value)
	}
	r := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := p.message(path+":"+strconv.Itoa(n), bytes.TrimRight(line, "\r\n")); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (p *decodePrinter) message(name string, value []byte) error {
	now := time.Now().UTC()
	res := p.joiner.Decode(interaction.Record{
		Topic: p.topic, Offset: p.offset, Time: now, Key: p.key, Value: value, Headers: p.headers,
	})
	p.offset++
	p.messages++
	if len(res.Bad) > 0 {
		p.bad++
	}
	return p.print(name, res)
}

// decodedMessage is one message as JSON for programs.
type decodedMessage struct {
	Message  string           `json:"message"`
	Outcome  decode.Outcome   `json:"outcome"`
	Format   string           `json:"format"`
	Envelope string           `json:"envelope"`
	Records  []decodedRecord  `json:"records"`
	Scores   []decodedScore   `json:"scores,omitempty"`
	Skips    []string         `json:"skips,omitempty"`
	Bad      []decodedElement `json:"bad,omitempty"`
	Held     int              `json:"held,omitempty"`
}

type decodedElement struct {
	Element int    `json:"element"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
}

// decodedRecord is a normalised record, its fields named as a checks file names them.
type decodedRecord struct {
	ID            string                     `json:"id"`
	Element       int                        `json:"element"`
	Time          time.Time                  `json:"time"`
	Status        interaction.Status         `json:"status"`
	Judgeable     bool                       `json:"judgeable"`
	SkipReason    string                     `json:"skip_reason,omitempty"`
	Input         *string                    `json:"input"`
	Output        *string                    `json:"output"`
	Expected      []string                   `json:"expected,omitempty"`
	Criteria      *string                    `json:"criteria,omitempty"`
	Context       []string                   `json:"context,omitempty"`
	Messages      []interaction.Message      `json:"messages,omitempty"`
	App           string                     `json:"app,omitempty"`
	Model         string                     `json:"model,omitempty"`
	Route         string                     `json:"route,omitempty"`
	PromptVersion string                     `json:"prompt_version,omitempty"`
	Tenant        string                     `json:"tenant,omitempty"`
	Environment   string                     `json:"environment,omitempty"`
	SessionID     string                     `json:"session_id,omitempty"`
	UserID        string                     `json:"user_id,omitempty"`
	TraceID       string                     `json:"trace_id,omitempty"`
	InputTokens   *int64                     `json:"input_tokens,omitempty"`
	OutputTokens  *int64                     `json:"output_tokens,omitempty"`
	LatencyMS     *float64                   `json:"latency_ms,omitempty"`
	Feedback      *interaction.Feedback      `json:"feedback,omitempty"`
	Error         *interaction.ProviderError `json:"error,omitempty"`
	Flags         []string                   `json:"flags,omitempty"`
	Attributes    map[string]string          `json:"attributes,omitempty"`
}

type decodedScore struct {
	Name          string    `json:"name"`
	Value         *float64  `json:"value"`
	Label         string    `json:"label,omitempty"`
	Comment       string    `json:"comment,omitempty"`
	Expected      string    `json:"expected,omitempty"`
	Source        string    `json:"source,omitempty"`
	InteractionID string    `json:"interaction_id,omitempty"`
	TraceID       string    `json:"trace_id,omitempty"`
	SpanID        string    `json:"span_id,omitempty"`
	ResponseID    string    `json:"response_id,omitempty"`
	Time          time.Time `json:"time"`
}

func decodedOf(name string, res decode.Result) decodedMessage {
	m := decodedMessage{Message: name, Outcome: res.Outcome, Format: res.Format, Envelope: res.Envelope,
		Records: []decodedRecord{}, Skips: res.Skips, Held: res.Held}
	for _, it := range res.Interactions {
		m.Records = append(m.Records, decodedRecord{
			ID: it.ID, Element: it.Element, Time: it.Time, Status: it.Status, Judgeable: it.Judgeable, SkipReason: it.SkipReason,
			Input: it.Input, Output: it.Output, Expected: it.Expected, Criteria: it.Criteria, Context: it.Context, Messages: it.Messages,
			App: it.App, Model: it.Model, Route: it.Route, PromptVersion: it.PromptVersion, Tenant: it.Tenant, Environment: it.Environment,
			SessionID: it.SessionID, UserID: it.UserID, TraceID: it.TraceID, InputTokens: it.InputTokens, OutputTokens: it.OutputTokens,
			LatencyMS: it.LatencyMS, Feedback: it.Feedback, Error: it.Error, Flags: it.Flags, Attributes: it.Attributes,
		})
	}
	for _, s := range res.Scores {
		m.Scores = append(m.Scores, decodedScore{
			Name: s.Name, Value: s.Value, Label: s.Label, Comment: s.Comment, Expected: s.Expected, Source: s.Source,
			InteractionID: s.InteractionID, TraceID: s.TraceID, SpanID: s.SpanID, ResponseID: s.ResponseID, Time: s.Time,
		})
	}
	for _, b := range res.Bad {
		m.Bad = append(m.Bad, decodedElement{b.Element, b.Reason, b.Error})
	}
	return m
}

func (p *decodePrinter) print(name string, res decode.Result) error {
	m := decodedOf(name, res)
	if p.app.json {
		enc := json.NewEncoder(p.app.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(m) // one line a message
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, read as %s", m.Message, m.Outcome, m.Format)
	if m.Envelope != "none" {
		fmt.Fprintf(&b, " in %s", m.Envelope)
	}
	b.WriteByte('\n')
	for _, r := range m.Records {
		writeFields(&b, r)
	}
	for _, s := range m.Scores {
		writeFields(&b, s)
	}
	for _, reason := range m.Skips {
		fmt.Fprintf(&b, "  skipped: %s\n", reason)
	}
	for _, e := range m.Bad {
		fmt.Fprintf(&b, "  element %d is bad: %s: %s\n", e.Element, e.Reason, e.Error)
	}
	if m.Held > 0 {
		fmt.Fprintf(&b, "  %d waits for its other half\n", m.Held)
	}
	_, err := io.WriteString(p.app.out, b.String())
	return err
}

// maxShown is how much of one value a person is shown.
const maxShown = 240

// writeFields prints a value's fields one a line, named as in its JSON, those that say
// something. The first stands out, so that records can be told apart.
func writeFields(b *strings.Builder, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		return // plain structs of strings and numbers always marshal
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_, _ = dec.Token()
	mark := "- "
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return
		}
		var field json.RawMessage
		if err := dec.Decode(&field); err != nil {
			return
		}
		fmt.Fprintf(b, "  %s%-15v %s\n", mark, name, shown(field))
		mark = "  "
	}
}

// shown is a JSON value for a person: texts without quotes, on one line, cut.
func shown(field json.RawMessage) string {
	text := string(field)
	var s string
	switch {
	case text == "null":
		return "(absent)"
	case json.Unmarshal(field, &s) == nil:
		text = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
		if text == "" {
			return `""`
		}
	}
	runes := 0
	for i := range text {
		if runes == maxShown {
			return fmt.Sprintf("%s... (%d bytes)", text[:i], len(text))
		}
		runes++
	}
	return text
}
