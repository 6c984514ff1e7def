package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// bodyWait is how long a client may take to send an insert: it holds a slot.
const bodyWait = 5 * time.Minute

// pieceSize is how much of a long insert goes to the engine at once.
const pieceSize = 1 << 20

// insert runs INSERT ... FORMAT f. Its data are the rest of the text, then body.
//
// Up to InsertSpool bytes are taken in before a connection is: a slow or dying
// client then costs no one else the lane, and an insert that is cut off before
// its end has never begun. Only a longer one reaches the engine in parts; cut
// off, it is cancelled, and the blocks the engine has stored by then stay, as on
// a server.
func (f *front) insert(w http.ResponseWriter, r *http.Request, req request, s statement, body io.Reader) error {
	if body != nil {
		slot, err := f.lanes.bodies.take(r.Context())
		if err != nil {
			return err
		}
		defer f.lanes.bodies.give(slot)
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(bodyWait)) == nil {
			defer func() { _ = control.SetReadDeadline(time.Time{}) }()
		}
	}
	var spool bytes.Buffer
	spool.WriteString(s.data)
	whole := body == nil
	if !whole {
		n, err := io.CopyN(&spool, body, int64(max(0, f.cfg.InsertSpool-spool.Len())))
		switch {
		case errors.Is(err, io.EOF):
			whole = true
		case err != nil:
			return cutOff(int64(len(s.data))+n, err)
		}
	}
	ln := f.lanes.pick(s.kind, req.comment)
	c, err := ln.take(r.Context())
	if err != nil {
		return err
	}
	defer ln.give(c)
	// A whole insert goes through even when the client leaves now: it may have
	// given up waiting, and the row's fate must not hang on the moment.
	if err := c.use(req.database); err != nil {
		return err
	}
	stream, err := c.insert(s.with(req.bounded(s, f.cfg)), s.format, req.params)
	if err != nil {
		return err
	}
	if !whole {
		if err := appendAll(stream, &spool, body); err != nil {
			return err
		}
	} else {
		stream.append(spool.Bytes())
	}
	rows, err := stream.done()
	if err != nil {
		return err
	}
	w.Header().Set("X-ClickHouse-Summary", summary(0, rows))
	w.WriteHeader(http.StatusOK)
	return nil
}

// appendAll passes on what the spool holds and then the rest as it arrives. When
// the engine has failed it stops early: done knows the reason.
func appendAll(stream *insertStream, spool *bytes.Buffer, body io.Reader) error {
	sent := int64(spool.Len())
	if !stream.append(spool.Bytes()) {
		return nil
	}
	*spool = bytes.Buffer{}
	piece := make([]byte, pieceSize)
	for {
		n, err := body.Read(piece)
		sent += int64(n)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			stream.cancel()
			return cutOff(sent, err)
		case !stream.append(piece[:n]) || err != nil:
			return nil
		}
	}
}

func cutOff(after int64, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &httpError{http.StatusBadRequest, strings.TrimSpace(fmt.Sprintf("the insert was cut off after %d bytes: %v", after, err))}
}
