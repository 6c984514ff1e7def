package dashboards

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed grafana
var grafana embed.FS

// Grafana returns what Grafana reads: dashboards as JSON, and below provisioning the
// files that make it read them.
func Grafana() fs.FS {
	files, err := fs.Sub(grafana, "grafana")
	if err != nil {
		panic(fmt.Sprintf("the folder of Grafana's files: %v", err)) // its name is the one above
	}
	return files
}
