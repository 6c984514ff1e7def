package dashboards

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed page
var files embed.FS

// Page returns the files of the built-in page; index.html is the first.
func Page() fs.FS {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(fmt.Sprintf("the page's folder: %v", err)) // its name is the one above
	}
	return page
}
