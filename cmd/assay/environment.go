package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/sethvargo/go-envconfig"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/interaction/decode"
	"assay/internal/monitor"
	"assay/internal/server"
	"assay/sink"
	"assay/sink/chdb"
)

// prefix is what every variable of ours begins with.
const prefix = "ASSAY_"

// environment is all that the process is told from outside, one struct per package.
// The checks file says what to judge; this says where everything is.
type environment struct {
	Checks   string `env:"CHECKS, default=assay.yaml" help:"path of the checks file"`
	DataDir  string `env:"DATA_DIR" help:"where the embedded engines keep their files; default: assay in the user's data folder"`
	Embedded bool   `env:"EMBEDDED, default=false" help:"let assay run start the embedded ClickHouse when no address is set"`
	LogLevel string `env:"LOG_LEVEL, default=info" help:"debug, info, warn or error"`
	LogJSON  bool   `env:"LOG_JSON, default=false" help:"log as JSON lines"`
	Worker   string `env:"WORKER" help:"this process's name in the rows; default: host name and process id"`

	Kafka      consumer.KafkaConfig      `env:", prefix=KAFKA_"`
	Consumer   consumer.Config           `env:", prefix=CONSUMER_"`
	DeadLetter consumer.DeadLetterConfig `env:", prefix=DEAD_LETTER_"`
	Decode     decode.Config             `env:", prefix=DECODE_"`
	Judge      judge.Config              `env:", prefix=JUDGE_"`
	ClickHouse sink.ConnConfig           `env:", prefix=CLICKHOUSE_"`
	Chdb       chdb.Config               `env:", prefix=CHDB_"`
	Sink       sink.WriterConfig         `env:", prefix=SINK_"`
	Monitor    monitor.Config            `env:", prefix=MONITOR_"`
	HTTP       server.Config             `env:", prefix=HTTP_"`
}

// errUsage marks what a person got wrong before anything ran: exit 2.
type errUsage struct{ error }

func (e errUsage) Unwrap() error { return e.error }

// usageError marks err, if there is one.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return errUsage{err}
}

// readEnvironment reads every variable and checks all but Kafka's and ClickHouse's,
// which not every command needs; all faults come at once.
func readEnvironment(ctx context.Context, environ []string) (environment, error) {
	var env environment
	if err := unknownVariables(environ); err != nil {
		return env, errUsage{err}
	}
	err := envconfig.ProcessWith(ctx, &envconfig.Config{
		Target:   &env,
		Lookuper: envconfig.PrefixLookuper(prefix, envconfig.MapLookuper(environMap(environ))),
	})
	if err != nil {
		return env, errUsage{fmt.Errorf("environment: %w", err)}
	}
	if env.DataDir == "" {
		if env.DataDir, err = chdb.DefaultDataDir(); err != nil {
			return env, errUsage{err}
		}
	}
	if env.Worker == "" {
		host, _ := os.Hostname()
		env.Worker = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	env.Chdb.DataDir = env.DataDir
	err = errors.Join(
		env.Consumer.Validate(), env.DeadLetter.Validate(), env.Decode.Validate(), env.Judge.Validate(),
		env.Sink.Validate(), env.Chdb.Validate(), env.Monitor.Validate(), env.HTTP.Validate(),
	)
	if err != nil {
		return env, errUsage{err}
	}
	return env, nil
}

func environMap(environ []string) map[string]string {
	vars := make(map[string]string, len(environ))
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	return vars
}

// variable is one documented variable.
type variable struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Help    string `json:"meaning"`
	Secret  bool   `json:"-"`
}

// variables lists every variable from the structs' tags, in their order.
func variables() []variable {
	var out []variable
	walkVariables(reflect.TypeFor[environment](), prefix, &out)
	return out
}

func walkVariables(t reflect.Type, prefix string, out *[]variable) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("env")
		if !ok {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Type.Kind() == reflect.Struct && strings.TrimSpace(name) == "" {
			_, p, _ := strings.Cut(options, "prefix=")
			walkVariables(f.Type, prefix+strings.TrimSpace(p), out)
			continue
		}
		// A default may hold commas: it is the last option.
		_, def, _ := strings.Cut(options, "default=")
		*out = append(*out, variable{
			Name: prefix + strings.TrimSpace(name), Default: def, Help: f.Tag.Get("help"),
			Secret: strings.Contains(name, "PASSWORD") || strings.Contains(name, "TOKEN"),
		})
	}
}

// injected is what Kubernetes sets for services whose names begin with assay; those of
// a service called assay itself have no name between.
var injected = regexp.MustCompile(`^ASSAY_(PORT(_.*)?|SERVICE_.*|([A-Z0-9]+_)+SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|([A-Z0-9]+_)+PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// unknownVariables refuses ASSAY_ variables that nothing reads: a misspelt setting
// that is silently ignored is worse than a start that fails.
func unknownVariables(environ []string) error {
	known := variables()
	names := make([]string, 0, len(known)+2)
	for _, v := range known {
		names = append(names, v.Name)
	}
	var errs []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case !strings.HasPrefix(name, prefix), slices.Contains(names, name):
		case name == "ASSAY_CASES", name == "ASSAY_DATA": // of the tests
		case injected.MatchString(name):
		case strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://"): // Kubernetes, of another service
		default:
			errs = append(errs, fmt.Errorf("%s: no such variable; the nearest is %s (assay config lists all)", name, nearest(name, names)))
		}
	}
	return errors.Join(errs...)
}

// nearest returns the candidate with the smallest edit distance.
func nearest(name string, candidates []string) string {
	best, dist := "", len(name)+64
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(name, c); d < dist {
			best, dist = c, d
		}
	}
	return best
}
