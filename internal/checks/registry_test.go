package checks

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestASchemaRegistryIsAnAddressOrMore(t *testing.T) {
	f := func(text string, want SchemaRegistry) {
		t.Helper()
		file, err := Parse("conf/a.yaml", []byte(strings.Replace(base(), "topic: t", "topic: t, schema_registry: "+text, 1)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if got := file.Sources[0].SchemaRegistry; !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %+v, want %+v", text, got, want)
		}
	}

	f(`"https://r:8081/"`, SchemaRegistry{Address: "https://r:8081"})
	f(`{ address: "http://r/apis/ccompat/v7", user_env: U, password_env: P }`, SchemaRegistry{Address: "http://r/apis/ccompat/v7", UserEnv: "U", PasswordEnv: "P"})
	// schemas stand beside the checks file
	f(`{ files: { "41": call.avsc, "42": /schemas/call.proto } }`, SchemaRegistry{Files: map[string]string{
		"41": filepath.Join("conf", "call.avsc"), "42": "/schemas/call.proto"}})
}

func TestFaultsOfASchemaRegistryPointAtTheirPlace(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := Parse("a.yaml", []byte(strings.Replace(base(), "topic: t", "topic: t, schema_registry: "+text, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), "a.yaml:"+want) {
			t.Errorf("%s\n got  %v\n want a.yaml:%s", text, err, want)
		}
	}

	f(`registry`, `2:40: source t: schema_registry: "registry"; want an address such as https://registry:8081`)
	f(`"https://u:p@r"`, `2:40: source t: schema_registry: want no user or password in it`)
	f(`{ address: "http://r", user_env: "my user" }`, `2:73: source t: schema_registry: user_env: want the name of an environment variable`)
	f(`{ user_env: U }`, `2:40: source t: schema_registry: want an address, files, or both`)
	f(`{ address: "http://r", user: U }`, `2:63: source t: schema_registry: unknown key user`)
}
