package decode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

// SchemaRegistry says where the schemas of a source's binary records are: at a
// registry that speaks Confluent's HTTP API (Apicurio's compatible one too), in files,
// or both. The zero value is neither.
type SchemaRegistry struct {
	Address  string            // https://host:8081, with a path where the API has one
	User     string            // of basic auth, or empty
	Password string            // of basic auth
	Token    string            // bearer, in place of user and password
	Files    map[string]string // schema id or GUID -> .avsc, .json, .proto, or a descriptor set
}

func (s SchemaRegistry) isZero() bool { return s.Address == "" && len(s.Files) == 0 }

// CheckSchemaRegistry explains what is wrong with an address, nil if nothing is.
func CheckSchemaRegistry(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("schema_registry: %q; want an address such as https://registry:8081", address)
	}
	return nil
}

// limits bound what a value may become as JSON.
type limits struct {
	bytes int64
	depth int
}

// A schema reads one value.
type schema interface {
	kind() string
	json(b []byte, lim limits) (value, error)
}

// jsonSchema is the schema of JSON: the bytes are what they are.
type jsonSchema struct{}

func (jsonSchema) kind() string                           { return "json" }
func (jsonSchema) json(b []byte, _ limits) (value, error) { return b, nil }

// A schemaError says what a value lacks to be what its schema says.
type schemaError struct {
	reason string
	err    error
}

func (e *schemaError) Error() string { return e.err.Error() }
func (e *schemaError) Unwrap() error { return e.err }

// bySchema reads a value by the schema of that id.
func (r *record) bySchema(id string, b []byte) {
	s, err := r.src.schemas.get(id)
	if err != nil {
		// Framed JSON says what it is; only its schema is missing.
		if i := skipSpace(b, 0); r.src.schemas == nil && i < len(b) && b[i] == '{' {
			if end, _, scanErr := scan(b, i, r.d.cfg.MaxDepth); scanErr == nil && skipSpace(b, end) == len(b) {
				r.documents(b)
				return
			}
		}
		r.bad(r.take(), unknownSchemaID, "schema %s: %v", id, err)
		return
	}
	doc, err := s.json(b, limits{bytes: int64(r.d.cfg.MaxInflated), depth: r.d.cfg.MaxDepth})
	if err != nil {
		reason := schemaMismatch
		var known *schemaError
		if errors.As(err, &known) {
			reason = known.reason
		}
		switch {
		case errors.Is(err, errTooDeep):
			reason = tooDeep
		case errors.Is(err, errGrown):
			reason = inflatedTooBig
		}
		r.bad(r.take(), reason, "schema %s: %v", id, err)
		return
	}
	r.wrap(s.kind())
	if len(doc) == 0 {
		r.skip(emptyValue)
		return
	}
	r.documents(doc)
}

// A schemas is one source's schemas by id. A schema never changes under its id, so what
// was found is kept; what was not is asked for again after a while.
type schemas struct {
	cfg   SchemaRegistry
	wait  time.Duration // how long a registry that does not answer is asked again
	files map[string]schema
	http  *http.Client

	known  *lru.Cache[string, schema]
	absent *lru.Cache[string, absence]
	flight singleflight.Group // partitions that need the same schema ask once
}

// absence is an id that the registry does not know, or did not give.
type absence struct {
	err   error
	until time.Time
}

const (
	maxSchemas     = 1000
	maxSchemaBytes = 4 << 20
	maxReferences  = 100
	askTimeout     = 10 * time.Second
	absentFor      = time.Minute
)

// newSchemas reads the files; the registry is asked when a record needs it.
func newSchemas(cfg SchemaRegistry, wait time.Duration) (*schemas, error) {
	if cfg.isZero() {
		return nil, nil
	}
	s := &schemas{cfg: cfg, wait: wait, files: make(map[string]schema, len(cfg.Files)), http: &http.Client{Timeout: askTimeout}}
	s.known, _ = lru.New[string, schema](maxSchemas) // only a size below 1 is an error
	s.absent, _ = lru.New[string, absence](maxSchemas)
	var errs []error
	if cfg.Address != "" {
		errs = append(errs, CheckSchemaRegistry(cfg.Address))
	}
	for id, path := range cfg.Files {
		one, err := schemaFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("schema_registry: files: %s: %s: %w", id, path, err))
			continue
		}
		s.files[strings.ToLower(id)] = one
	}
	return s, errors.Join(errs...)
}

func schemaFile(path string) (schema, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(path) {
	case ".avsc":
		return parseAvro(string(b), nil)
	case ".json":
		return jsonSchema{}, nil
	case ".proto":
		return compileProto(context.Background(), string(b), func(name string) (string, error) {
			inner, err := os.ReadFile(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
			return string(inner), err
		})
	case ".pb", ".desc", ".binpb", ".protoset":
		return protoFromSet(b)
	}
	return nil, errors.New("want .avsc, .json, .proto, or a descriptor set (.pb, .desc, .binpb, .protoset)")
}

var (
	errNoRegistry = errors.New("the source has no schema_registry")
	errNotThere   = errors.New("not among the files, and the source has no registry's address")
)

// get returns the schema of an id. It may ask the registry and wait for it.
func (s *schemas) get(id string) (schema, error) {
	if s == nil {
		return nil, errNoRegistry
	}
	if one, ok := s.files[id]; ok {
		return one, nil
	}
	if s.cfg.Address == "" {
		return nil, errNotThere
	}
	if one, ok := s.known.Get(id); ok {
		return one, nil
	}
	if a, ok := s.absent.Get(id); ok && time.Now().Before(a.until) {
		return nil, a.err
	}
	one, err, _ := s.flight.Do(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), s.wait)
		defer cancel()
		one, err := s.fetch(ctx, id)
		if err != nil {
			s.absent.Add(id, absence{err, time.Now().Add(absentFor)})
			return nil, err
		}
		s.known.Add(id, one)
		return one, nil
	})
	if err != nil {
		return nil, err
	}
	return one.(schema), nil
}

// A registeredSchema is a schema as the API gives it.
type registeredSchema struct {
	Schema     string `json:"schema"`
	SchemaType string `json:"schemaType"`
	References []struct {
		Name    string `json:"name"`
		Subject string `json:"subject"`
		Version int    `json:"version"`
	} `json:"references"`
}

func (s *schemas) fetch(ctx context.Context, id string) (schema, error) {
	at := "/schemas/ids/" + id
	if strings.Contains(id, "-") {
		at = "/schemas/guids/" + id
	}
	var root registeredSchema
	if err := s.ask(ctx, at, &root); err != nil {
		return nil, err
	}
	// References come depth first, so that each stands behind what it refers to.
	texts, order := make(map[string]string), []string(nil)
	if err := s.references(ctx, root, texts, &order); err != nil {
		return nil, err
	}
	switch root.SchemaType {
	case "", "AVRO":
		refs := make([]string, 0, len(order))
		for _, name := range order {
			refs = append(refs, texts[name])
		}
		return parseAvro(root.Schema, refs)
	case "PROTOBUF":
		return compileProto(ctx, root.Schema, func(name string) (string, error) {
			if text, ok := texts[name]; ok {
				return text, nil
			}
			return "", fmt.Errorf("%s is not among the references", name)
		})
	case "JSON":
		return jsonSchema{}, nil
	}
	return nil, fmt.Errorf("a schema of type %s; want AVRO, PROTOBUF or JSON", root.SchemaType)
}

func (s *schemas) references(ctx context.Context, of registeredSchema, texts map[string]string, order *[]string) error {
	for _, ref := range of.References {
		if _, ok := texts[ref.Name]; ok {
			continue
		}
		if len(texts) == maxReferences {
			return fmt.Errorf("more than %d references", maxReferences)
		}
		var inner registeredSchema
		if err := s.ask(ctx, fmt.Sprintf("/subjects/%s/versions/%d", url.PathEscape(ref.Subject), ref.Version), &inner); err != nil {
			return fmt.Errorf("reference %s: %w", ref.Name, err)
		}
		texts[ref.Name] = inner.Schema // before its own, so that a circle ends
		if err := s.references(ctx, inner, texts, order); err != nil {
			return err
		}
		*order = append(*order, ref.Name)
	}
	return nil
}

// ask repeats a request while the registry is away or overloaded: its outage must not
// cost records. What the registry knows nothing of it will not know a second later.
func (s *schemas) ask(ctx context.Context, at string, into *registeredSchema) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := s.askOnce(ctx, at, into)
		var final *finalError
		if err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the registry gave no answer within %s: %w", s.wait, err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// finalError is an answer that asking again will not change.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

func (s *schemas) askOnce(ctx context.Context, at string, into *registeredSchema) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(s.cfg.Address, "/")+at, nil)
	if err != nil {
		return &finalError{err}
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	switch {
	case s.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+s.cfg.Token)
	case s.cfg.User != "":
		req.SetBasicAuth(s.cfg.User, s.cfg.Password)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSchemaBytes+1))
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("%s: %s", at, resp.Status)
	case resp.StatusCode == http.StatusNotFound:
		return &finalError{errors.New("the registry does not know it")}
	case resp.StatusCode != http.StatusOK:
		return &finalError{fmt.Errorf("%s: %s", at, resp.Status)}
	case len(body) > maxSchemaBytes:
		return &finalError{fmt.Errorf("%s: a schema over %d bytes", at, maxSchemaBytes)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &finalError{fmt.Errorf("%s: %w", at, err)}
	}
	return nil
}
