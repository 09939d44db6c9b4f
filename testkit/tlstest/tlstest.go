// Package tlstest creates certificates for tests: an authority, and its certificates, as PEM files for
// servers and clients.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates into a folder of the test.
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority; its certificate is authority.pem.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("authority", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true})
	return a
}

// Path returns the path of a file: NAME.pem holds a certificate, NAME-key.pem its key.
func (a *Authority) Path(name string) string { return filepath.Join(a.dir, name+".pem") }

// Pool returns a pool with only the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Server issues a certificate for servers on 127.0.0.1 and with the names of hosts.
func (a *Authority) Server(name string, hosts ...string) {
	a.t.Helper()
	a.issue(name, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client issues a certificate for a client.
func (a *Authority) Client(name string) {
	a.t.Helper()
	a.issue(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// issue writes NAME.pem and NAME-key.pem.
func (a *Authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name, "CERTIFICATE", raw)
	a.write(name+"-key", "PRIVATE KEY", private)
	return cert, key
}

func (a *Authority) write(name, kind string, raw []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.Path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}
