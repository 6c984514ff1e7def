package consumer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

func (k KafkaConfig) securityFaults() []error {
	var errs []error
	if !k.TLS && (k.TLSCA != "" || k.TLSCert != "" || k.TLSKey != "") {
		errs = append(errs, errors.New("ASSAY_KAFKA_TLS_CA, _CERT and _KEY: want ASSAY_KAFKA_TLS=true beside them"))
	}
	if (k.TLSCert == "") != (k.TLSKey == "") {
		errs = append(errs, errors.New("ASSAY_KAFKA_TLS_CERT and ASSAY_KAFKA_TLS_KEY: want both or neither"))
	}
	switch k.SASL {
	case "":
		if k.Username != "" || k.Password != "" || k.PasswordFile != "" {
			errs = append(errs, errors.New("ASSAY_KAFKA_USERNAME, _PASSWORD and _PASSWORD_FILE: want ASSAY_KAFKA_SASL beside them"))
		}
	case "plain", "scram-sha-256", "scram-sha-512":
		if k.Username == "" {
			errs = append(errs, errors.New("ASSAY_KAFKA_USERNAME=: want the name for ASSAY_KAFKA_SASL"))
		}
		if (k.Password == "") == (k.PasswordFile == "") {
			errs = append(errs, errors.New("ASSAY_KAFKA_PASSWORD and ASSAY_KAFKA_PASSWORD_FILE: want one of them"))
		}
	default:
		errs = append(errs, fmt.Errorf("ASSAY_KAFKA_SASL=%s: want plain, scram-sha-256 or scram-sha-512", k.SASL))
	}
	return errs
}

// tlsConfig returns nil when connections are not encrypted.
func (k KafkaConfig) tlsConfig() (*tls.Config, error) {
	if !k.TLS {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.TLSCA != "" {
		pem, err := os.ReadFile(k.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("ASSAY_KAFKA_TLS_CA: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ASSAY_KAFKA_TLS_CA=%s: no certificate in it", k.TLSCA)
		}
	}
	if k.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(k.TLSCert, k.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("ASSAY_KAFKA_TLS_CERT: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// mechanism returns nil when the brokers ask for no name.
func (k KafkaConfig) mechanism() (sasl.Mechanism, error) {
	if k.SASL == "" {
		return nil, nil
	}
	password := k.Password
	if k.PasswordFile != "" {
		text, err := os.ReadFile(k.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("ASSAY_KAFKA_PASSWORD_FILE: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	switch k.SASL {
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, k.Username, password)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, k.Username, password)
	default:
		return plain.Mechanism{Username: k.Username, Password: password}, nil
	}
}
