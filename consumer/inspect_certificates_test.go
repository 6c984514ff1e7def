package consumer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"
)

// Servers show certificates that no client needs, such as an old cross-signature of their
// authority that has ended. What counts is the path that clients take.
func TestACertificateThatNoClientNeedsIsNoFault(t *testing.T) {
	now := time.Now()
	root, rootKey := signed(t, "root", now.Add(400*24*time.Hour), nil, nil)
	between, betweenKey := signed(t, "between", now.Add(90*24*time.Hour), root, rootKey)
	leaf, _ := signed(t, "broker.example", now.Add(60*24*time.Hour), between, betweenKey)
	old, _ := signed(t, "cross", now.Add(-24*time.Hour), nil, nil)
	endedBetween, endedKey := signed(t, "between", now.Add(-24*time.Hour), root, rootKey)
	orphan, _ := signed(t, "broker.example", now.Add(60*24*time.Hour), endedBetween, endedKey)
	roots := x509.NewCertPool()
	roots.AddCert(root)
	f := func(chain []*x509.Certificate, ends time.Time, fault string) {
		t.Helper()
		expires, err := verify(chain, roots, "broker.example", now)
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("fault %v, want %q", err, fault)
		}
		if !expires.Equal(ends) {
			t.Errorf("ends %s, want %s", expires, ends)
		}
	}
	f([]*x509.Certificate{leaf, between}, leaf.NotAfter, "")
	f([]*x509.Certificate{leaf, between, old}, leaf.NotAfter, "")
	f([]*x509.Certificate{orphan, endedBetween}, endedBetween.NotAfter, "the certificate of between ended on")
	f([]*x509.Certificate{leaf}, leaf.NotAfter, "signed by between, which is not trusted here")
}

// signed makes a certificate; without an issuer it signs itself.
func signed(t *testing.T, name string, ends time.Time, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IsCA: !strings.Contains(name, "."), BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: ends,
	}
	if issuer == nil {
		issuer, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
