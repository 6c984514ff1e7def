package consumer

import (
	"context"
	"net"
	"sync"
	"time"
)

// connections dials and remembers what is open: the library gives no other way to
// break off a join that waits for the whole group, or a fetch nobody waits for.
type connections struct {
	dialer net.Dialer

	mu     sync.Mutex // guards opened
	opened map[*connection]time.Time
}

type connection struct {
	net.Conn
	all *connections
}

func newConnections() *connections {
	return &connections{opened: make(map[*connection]time.Time)}
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tracked := &connection{conn, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened[tracked] = time.Now()
	return tracked, nil
}

func (c *connection) Close() error {
	c.all.mu.Lock()
	delete(c.all.opened, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// closeOlder closes what has been open for longer than age.
func (c *connections) closeOlder(age time.Duration) {
	c.mu.Lock()
	var old []*connection
	for conn, since := range c.opened {
		if time.Since(since) >= age {
			old = append(old, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close() // whoever uses it gets the error
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.opened)
}
