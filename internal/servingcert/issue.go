package servingcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// authority signs serving certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
	keyPEM      []byte
}

// renewed returns the Secret's data with a fresh certificate, signed by the
// authority that is there as long as that outlives it: pods trust the authority
// they were started with.
func (k *Keeper) renewed(data map[string][]byte) (map[string][]byte, error) {
	now := k.Clock.Now()
	signer, ok := loadAuthority(data)
	trusted := data[keyAuthority]
	if !ok || signer.certificate.NotAfter.Sub(now) < certificateLife {
		var err error
		if signer, err = newAuthority(now); err != nil {
			return nil, err
		}
		trusted = append(slices.Clone(signer.pem), vouchers(data, now)...)
	}
	certificate, key, err := k.issue(signer, now)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyAuthority: trusted, keyAuthorityKey: signer.keyPEM, keyCertificate: certificate, keyPrivate: key,
	}, nil
}

// vouchers are the authorities, PEM, by which the certificate that is replaced still
// verifies: another replica may serve it for a while.
func vouchers(data map[string][]byte, now time.Time) (found []byte) {
	served, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil || served.Leaf == nil {
		return nil
	}
	for block, rest := pem.Decode(data[keyAuthority]); block != nil; block, rest = pem.Decode(rest) {
		candidate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(candidate)
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err == nil {
			found = append(found, pem.EncodeToMemory(block)...)
		}
	}
	return found
}

func loadAuthority(data map[string][]byte) (authority, bool) {
	loaded, err := tls.X509KeyPair(data[keyAuthority], data[keyAuthorityKey])
	if err != nil {
		return authority{}, false
	}
	key, isSigner := loaded.PrivateKey.(crypto.Signer)
	if !isSigner || loaded.Leaf == nil {
		return authority{}, false
	}
	return authority{certificate: loaded.Leaf, key: key, pem: certificatePEM(loaded.Leaf.Raw), keyPEM: data[keyAuthorityKey]}, true
}

func newAuthority(now time.Time) (authority, error) {
	template, err := newTemplate(organisationName+" authority", now, authorityLife)
	if err != nil {
		return authority{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, keyPEM, err := newKey()
	if err != nil {
		return authority{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("sign authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, fmt.Errorf("parse authority: %w", err)
	}
	return authority{certificate: certificate, key: key, pem: certificatePEM(der), keyPEM: keyPEM}, nil
}

func (k *Keeper) issue(signer authority, now time.Time) (certificate, key []byte, err error) {
	template, err := newTemplate(organisationName, now, certificateLife)
	if err != nil {
		return nil, nil, err
	}
	template.DNSNames, template.IPAddresses = k.DNSNames, k.IPs
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	private, privatePEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, private.Public(), signer.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign serving certificate: %w", err)
	}
	return certificatePEM(der), privatePEM, nil
}

func newTemplate(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: []string{organisationName}},
		// An hour back, for clocks that disagree.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(life),
	}, nil
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
