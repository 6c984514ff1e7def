package testkit

import (
	"fmt"
	"strings"
)

// A KafkaListener is a way into a broker.
type KafkaListener string

// The listeners. Open is there always, the others with KafkaOptions.Secured.
const (
	KafkaOpen    KafkaListener = "OPEN"
	KafkaSASL    KafkaListener = "SASL"    // name and password: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	KafkaTLS     KafkaListener = "TLS"     // encrypted, for everybody
	KafkaMTLS    KafkaListener = "MTLS"    // encrypted, for whoever has a certificate of the authority
	KafkaSASLTLS KafkaListener = "SASLTLS" // encrypted, with name and password
)

// controllerListener is the brokers' own.
const controllerListener KafkaListener = "CONTROLLER"

// KafkaUser may enter by KafkaSASL with KafkaPassword, whatever the mechanism.
const (
	KafkaUser     = "reader"
	KafkaPassword = "right-password"
)

func protocolOf(l KafkaListener) string {
	switch l {
	case KafkaSASL:
		return "SASL_PLAINTEXT"
	case KafkaTLS, KafkaMTLS:
		return "SSL"
	case KafkaSASLTLS:
		return "SASL_SSL"
	default:
		return "PLAINTEXT"
	}
}

// settings is a broker's server.properties: one disk, and waits short enough for tests.
func (b *kafkaBroker) settings(k *KafkaCluster) string {
	var s strings.Builder
	set := func(name string, value any) { fmt.Fprintf(&s, "%s=%v\n", name, value) }
	set("process.roles", "broker,controller")
	set("node.id", b.id)
	if len(k.brokers) == 1 {
		set("controller.quorum.bootstrap.servers", b.addrs[controllerListener])
	} else {
		var voters []string
		for _, v := range k.brokers {
			voters = append(voters, fmt.Sprintf("%d@%s", v.id, v.addrs[controllerListener]))
		}
		set("controller.quorum.voters", strings.Join(voters, ","))
		set("controller.quorum.fetch.timeout.ms", 1000)
		set("controller.quorum.election.timeout.ms", 500)
	}
	var listeners, advertised, protocols []string
	for _, l := range k.listeners {
		at := fmt.Sprintf("%s://%s", l, b.addrs[l])
		listeners = append(listeners, at)
		protocols = append(protocols, fmt.Sprintf("%s:%s", l, protocolOf(l)))
		if l != controllerListener {
			advertised = append(advertised, at)
		}
	}
	set("listeners", strings.Join(listeners, ","))
	set("advertised.listeners", strings.Join(advertised, ","))
	set("listener.security.protocol.map", strings.Join(protocols, ","))
	set("inter.broker.listener.name", KafkaOpen)
	set("controller.listener.names", controllerListener)
	set("log.dirs", b.data)

	replicas := len(k.brokers)
	set("default.replication.factor", replicas)
	set("min.insync.replicas", min(replicas, 2))
	for _, topic := range []string{"offsets.topic", "transaction.state.log", "share.coordinator.state.topic"} {
		set(topic+".num.partitions", 1)
		set(topic+".replication.factor", replicas)
		if topic != "offsets.topic" {
			set(topic+".min.isr", min(replicas, 2))
		}
	}
	set("auto.create.topics.enable", false)
	set("group.initial.rebalance.delay.ms", 0)
	set("group.min.session.timeout.ms", 500)
	// a broker that was killed is waited for by the controller before it may come back
	set("broker.session.timeout.ms", 3000)
	set("broker.heartbeat.interval.ms", 500)
	set("log.cleaner.dedupe.buffer.size", 16<<20) // the default is more than the heap
	set("log.cleaner.backoff.ms", 500)
	set("message.max.bytes", 8<<20)
	if k.Certificates != nil {
		for _, l := range []KafkaListener{KafkaTLS, KafkaMTLS, KafkaSASLTLS} {
			prefix := "listener.name." + strings.ToLower(string(l)) + ".ssl."
			set(prefix+"keystore.type", "PEM")
			set(prefix+"keystore.location", k.Certificates.server)
			set(prefix+"truststore.type", "PEM")
			set(prefix+"truststore.location", k.Certificates.CA)
			set(prefix+"client.auth", map[bool]string{true: "required", false: "none"}[l == KafkaMTLS])
		}
		for _, l := range []KafkaListener{KafkaSASL, KafkaSASLTLS} {
			prefix := "listener.name." + strings.ToLower(string(l)) + "."
			set(prefix+"sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512")
			set(prefix+"plain.sasl.jaas.config", fmt.Sprintf(
				"org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=\"%s\";", KafkaUser, KafkaPassword))
			for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
				set(prefix+m+".sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required;")
			}
		}
	}
	return s.String()
}
