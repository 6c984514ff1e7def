package testkit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// terminateTLS listens with the server's certificate and passes what is inside on to
// a plain port, until the test ends.
func terminateTLS(tb testing.TB, c *Certificates, clientCertificates bool, target string) (addr string) {
	tb.Helper()
	pair, err := tls.LoadX509KeyPair(c.server, c.server)
	if err != nil {
		tb.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clientCertificates {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			tb.Fatal(err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(pem)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		tb.Fatal(err)
	}
	var open sync.WaitGroup
	ends := &connections{}
	open.Go(func() {
		for {
			outer, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { ends.join(outer, target) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		ends.close()
		open.Wait()
	})
	return l.Addr().String()
}

// connections are the open ones of a front, so that its end can end them.
type connections struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	open   map[net.Conn]bool
}

// join copies both ways until one side ends.
func (c *connections) join(outer net.Conn, target string) {
	inner, err := net.Dial("tcp", target)
	if err != nil {
		_ = outer.Close()
		return
	}
	if !c.add(outer, inner) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(outer, inner)
		_ = errors.Join(outer.Close(), inner.Close())
	})
	_, _ = io.Copy(inner, outer)
	_ = errors.Join(outer.Close(), inner.Close())
	back.Wait()
	c.remove(outer, inner)
}

// add is false, with the connections closed, once the front has ended.
func (c *connections) add(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		if c.closed {
			_ = conn.Close()
			continue
		}
		if c.open == nil {
			c.open = make(map[net.Conn]bool)
		}
		c.open[conn] = true
	}
	return !c.closed
}

func (c *connections) remove(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		delete(c.open, conn)
	}
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		_ = conn.Close()
	}
}
