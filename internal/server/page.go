package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"assay/dashboards"
)

// page serves the built-in page from memory.
type page struct{ files map[string]asset }

type asset struct {
	data        []byte
	contentType string
	etag        string
}

func newPage() (*page, error) {
	p := &page{files: make(map[string]asset)}
	err := fs.WalkDir(dashboards.Page(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dashboards.Page(), name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		a := asset{data: data, contentType: contentType(name), etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		p.files[name] = a
		if name == "index.html" {
			p.files[""] = a
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the page: %w", err)
	}
	return p, nil
}

// contentType does not ask the machine's tables where a wrong entry would break the
// page: nosniff makes browsers believe what is said here.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := p.files[r.PathValue("file")]
	if !ok {
		writeProblem(w, http.StatusNotFound, "no such path: "+quoted(r.URL.Path))
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // asked again after an upgrade, answered by the tag
	h.Set("ETag", a.etag)
	if r.Header.Get("If-None-Match") == a.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.contentType)
	_, _ = w.Write(a.data) // a client that has gone needs no answer
}
