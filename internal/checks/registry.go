package checks

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"assay/internal/interaction/decode"
)

// SchemaRegistry is where the schemas of a source's binary records are. Its secrets
// stand in environment variables, of which the file has the names.
type SchemaRegistry struct {
	Address     string
	UserEnv     string
	PasswordEnv string
	TokenEnv    string
	Files       map[string]string // schema id or GUID -> path, from the checks file's folder if relative
}

// schemaRegistry reads schema_registry: an address, or a mapping of address, user_env,
// password_env, token_env and files.
func (l *loader) schemaRegistry(n ast.Node, where string) SchemaRegistry {
	var s SchemaRegistry
	where += ": schema_registry"
	switch n.(type) {
	case nil:
		return s
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		s.Address = l.registryAddress(n, where)
		return s
	}
	m := l.mapping(n, where)
	if m == nil {
		return s
	}
	if at := m.take("address"); at != nil {
		s.Address = l.registryAddress(at, where+": address")
	}
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, v := range []struct {
		key  string
		into *string
	}{{"user_env", &s.UserEnv}, {"password_env", &s.PasswordEnv}, {"token_env", &s.TokenEnv}} {
		at := m.take(v.key)
		if text, ok := l.text(at, where+": "+v.key); ok {
			if !name.MatchString(text) {
				l.fault(at, "%s: %s: want the name of an environment variable, not the secret itself", where, v.key)
			}
			*v.into = text
		}
	}
	if at := m.take("files"); at != nil {
		s.Files = l.schemaFiles(at, where+": files")
	}
	if s.Address == "" && len(s.Files) == 0 {
		l.fault(n, "%s: want an address, files, or both", where)
	}
	m.done("sources.schema_registry")
	return s
}

func (l *loader) registryAddress(n ast.Node, where string) string {
	text, ok := l.text(n, where)
	if !ok {
		return ""
	}
	if err := decode.CheckSchemaRegistry(text); err != nil {
		l.fault(n, "%s: %q; want an address such as https://registry:8081", where, text)
		return ""
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		l.fault(n, "%s: want no user or password in it; they go into the variables that user_env and password_env name", where)
	}
	return strings.TrimRight(text, "/")
}

// schemaFiles reads which file holds which schema; decode reads the files themselves.
func (l *loader) schemaFiles(n ast.Node, where string) map[string]string {
	m := l.mapping(n, where)
	if m == nil {
		return nil
	}
	files := make(map[string]string, len(m.entries))
	for _, e := range m.entries {
		path, ok := l.text(e.value, where+": "+e.name)
		if !ok {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(l.file.Path), path)
		}
		files[e.name] = path
	}
	return files
}
