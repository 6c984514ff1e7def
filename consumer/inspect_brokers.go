package consumer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// A BrokerState is what came of looking at one address.
type BrokerState struct {
	Addr       string
	Advertised bool  // named by another broker, not by us
	Err        error // the true reason why it cannot be used
	Fix        string
	Expires    time.Time // until when its certificates are good; zero without TLS
}

// Brokers looks at every address of the configuration, then at the ones that the cluster
// names itself: clients are sent to those, so each must be reachable from here.
func (i *Inspector) Brokers(ctx context.Context) []BrokerState {
	out := i.look(ctx, i.c.cfg.Brokers, false)
	for _, b := range out {
		if b.Err != nil {
			continue
		}
		named, err := i.advertised(ctx)
		if err != nil {
			return out // topics will tell
		}
		return append(out, i.look(ctx, named, true)...)
	}
	return out
}

func (i *Inspector) look(ctx context.Context, addrs []string, advertised bool) []BrokerState {
	out := make([]BrokerState, len(addrs))
	var wg sync.WaitGroup
	for n, addr := range addrs {
		wg.Go(func() {
			out[n] = i.broker(ctx, addr)
			out[n].Advertised = advertised
		})
	}
	wg.Wait()
	return out
}

// advertised are the brokers' own addresses that the configuration does not have.
func (i *Inspector) advertised(ctx context.Context) ([]string, error) {
	res, err := i.c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, b := range i.c.cfg.Brokers {
		known[b] = true
	}
	var out []string
	for _, b := range res.Brokers {
		addr := net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
		if !known[addr] {
			known[addr] = true
			out = append(out, addr)
		}
	}
	return out, nil
}

func (i *Inspector) broker(ctx context.Context, addr string) BrokerState {
	b := BrokerState{Addr: addr}
	cfg := i.c.cfg
	cfg.Brokers = []string{addr}
	one, err := newCluster(cfg, nil)
	if err != nil { // a file that cannot be read
		b.Err, b.Fix = err, "correct the variable, or make the file readable"
		return b
	}
	defer one.close()
	if one.tls != nil {
		b.Expires, b.Err = certificates(ctx, one.tls, addr, cfg.Timeout)
	}
	if b.Err == nil {
		b.Err = one.reason(ctx)
	}
	if b.Err != nil {
		b.Fix = cfg.fix(b.Err)
	}
	return b
}

// certificates looks at what the broker shows: until when it is good, and what is
// wrong with it. Other errors are for reason to find.
func certificates(ctx context.Context, ours *tls.Config, addr string, wait time.Duration) (expires time.Time, fault error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return time.Time{}, nil
	}
	cfg := ours.Clone()
	cfg.ServerName = host
	cfg.InsecureSkipVerify = true // to see the certificate that would be refused; VerifyConnection decides
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		expires, fault = verify(s.PeerCertificates, ours.RootCAs, host, time.Now())
		return fault
	}
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return expires, fault
}

// verify is what a client does with a broker's certificates. Each fault is said by
// itself: the standard library stops at the first, and a certificate that has ended is
// no better for a right name. What a broker shows beyond what leads to an authority does
// not matter.
func verify(chain []*x509.Certificate, roots *x509.CertPool, host string, now time.Time) (expires time.Time, fault error) {
	if len(chain) == 0 {
		return time.Time{}, errors.New("the broker shows no certificate")
	}
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	var errs []error
	paths, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	if err != nil {
		expires, errs = firstEnd(chain), faults(chain, x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	}
	if err != nil && errs == nil { // an authority of ours has ended
		errs = []error{err}
	}
	for _, path := range paths { // clients take any
		if end := firstEnd(path); end.After(expires) {
			expires = end
		}
	}
	if err := leaf.VerifyHostname(host); err != nil {
		errs = append(errs, fmt.Errorf("the certificate is not for %s but for %s: %w", host, names(leaf), err))
	}
	return expires, errors.Join(errs...)
}

func firstEnd(chain []*x509.Certificate) time.Time {
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// faults are those of a chain that leads to no authority now.
func faults(chain []*x509.Certificate, o x509.VerifyOptions) (errs []error) {
	leaf, now := chain[0], o.CurrentTime
	for _, c := range chain {
		switch {
		case now.After(c.NotAfter):
			errs = append(errs, fmt.Errorf("the certificate of %s ended on %s: %w", c.Subject.CommonName, c.NotAfter.UTC().Format(time.DateOnly),
				x509.CertificateInvalidError{Cert: c, Reason: x509.Expired}))
		case now.Before(c.NotBefore):
			errs = append(errs, fmt.Errorf("the certificate of %s begins on %s only; is this machine's clock right?", c.Subject.CommonName, c.NotBefore.UTC().Format(time.DateTime)))
		}
	}
	// within its time, so that the other faults show
	if now.After(leaf.NotAfter) {
		o.CurrentTime = leaf.NotAfter
	}
	if _, err := leaf.Verify(o); err != nil {
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			err = fmt.Errorf("the certificate of %s is signed by %s, which is not trusted here: %w", leaf.Subject.CommonName, leaf.Issuer.CommonName, err)
		}
		var ended x509.CertificateInvalidError
		if !errors.As(err, &ended) || ended.Reason != x509.Expired {
			errs = append(errs, err)
		}
	}
	return errs
}

func names(c *x509.Certificate) string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no name at all (its common name does not count)"
	}
	return strings.Join(all, ", ")
}

// fix says what a person can do about a broker that cannot be used.
func (k KafkaConfig) fix(err error) string {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
		plain     interface{ Timeout() bool }
		dns       *net.DNSError
		operation *net.OpError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the broker's certificate; no client can connect before"
	case errors.As(err, &authority) && k.TLSCA == "":
		return "set ASSAY_KAFKA_TLS_CA to the PEM file of the authority that signed it"
	case errors.As(err, &authority):
		return "ASSAY_KAFKA_TLS_CA=" + k.TLSCA + " holds another authority: put the one that signed it into the file"
	case errors.As(err, &name):
		return "connect by a name that the certificate has, or have it issued for this one (subject alternative names)"
	case refusedCertificate(err):
		return "set ASSAY_KAFKA_TLS_CERT and ASSAY_KAFKA_TLS_KEY to a certificate that the broker's authority has signed"
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return "correct ASSAY_KAFKA_USERNAME and ASSAY_KAFKA_PASSWORD (or _FILE), and see that the user exists for ASSAY_KAFKA_SASL=" + k.SASL
	case errors.Is(err, kafka.UnsupportedSASLMechanism), errors.Is(err, kafka.IllegalSASLState):
		return "the listener does not offer ASSAY_KAFKA_SASL=" + k.SASL + ": choose one that it offers, or another port"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the listener speaks another protocol: check its port, ASSAY_KAFKA_TLS and ASSAY_KAFKA_SASL"
	case strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return "this is a listener without TLS: use the port of the encrypted one, or leave ASSAY_KAFKA_TLS out"
	case errors.As(err, &dns):
		return "the name is not known on this machine: correct it, or the broker's advertised.listeners"
	case errors.As(err, &plain) && plain.Timeout():
		return "nothing answers: check the port, firewalls, and the broker's advertised.listeners"
	case errors.As(err, &operation):
		return "nobody listens there: check host and port, whether the broker runs, and its advertised.listeners"
	}
	return "check address, listener, TLS and SASL settings (ASSAY_KAFKA_...)"
}
