package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"assay/consumer"
	"assay/internal/interaction/decode"
)

// certificateSoon is when a certificate's end is worth a warning.
const certificateSoon = 30 * 24 * time.Hour

// topicLoad is what of a topic the load depends on.
type topicLoad struct {
	topic      string
	partitions int
	perSecond  float64 // records, over the last hour
}

// kafka looks at every broker, then at the group and the topics.
func (d *doctor) kafka(ctx context.Context) {
	if err := errors.Join(d.env.Kafka.Validate(), d.env.Consumer.FitsIn(d.env.Kafka)); err != nil {
		d.fail("kafka", err, "set ASSAY_KAFKA_BROKERS and correct what is named")
		return
	}
	look, err := consumer.NewInspector(d.env.Kafka)
	if err != nil {
		d.fail("kafka", err, "correct the variable, or make the file readable")
		return
	}
	defer look.Close()
	if !d.brokers(ctx, look) {
		return
	}
	d.group(ctx, look)
	if d.file == nil {
		return
	}
	sources, err := decodeSources(d.file, d.app.environ)
	if err != nil {
		d.fail("sources", err, "set the variable that the checks file names")
		return
	}
	decoder, err := decode.New(d.env.Decode, sources)
	if err != nil {
		d.fail("sources", err, "correct the source in "+d.file.Path)
		return
	}
	for _, topic := range d.file.Topics() {
		limited, cancel := context.WithTimeout(ctx, doctorWait)
		t, err := look.Topic(limited, topic)
		cancel()
		if err != nil {
			d.fail("topic "+topic, err, "the brokers do not answer for it: look at their logs")
			continue
		}
		d.topic(topic, t, decoder.NewJoiner(topic).Reach())
	}
}

// brokers reports whether any of them can be used.
func (d *doctor) brokers(ctx context.Context, look *consumer.Inspector) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*doctorWait)
	defer cancel()
	all, usable := look.Brokers(ctx), 0
	for _, b := range all {
		if b.Err == nil && !b.Advertised {
			usable++
		}
	}
	for _, b := range all {
		what := "broker " + b.Addr
		switch left := time.Until(b.Expires); {
		case b.Err != nil && b.Advertised:
			d.fail(what, fmt.Errorf("the cluster sends clients there, and it cannot be used from here: %w", b.Err), b.Fix)
		case b.Err != nil && usable > 0:
			d.warn(what, b.Err.Error(), b.Fix)
		case b.Err != nil:
			d.fail(what, b.Err, b.Fix)
		case b.Expires.IsZero():
			d.ok(what, "answers, not encrypted")
		case left < certificateSoon:
			d.warn(what, fmt.Sprintf("answers; a certificate ends in %d days, on %s", int(left.Hours()/24), b.Expires.UTC().Format(time.DateOnly)),
				"renew it: from that day on nothing can connect")
		default:
			d.ok(what, fmt.Sprintf("answers; certificates good for %d days, until %s", int(left.Hours()/24), b.Expires.UTC().Format(time.DateOnly)))
		}
	}
	return usable > 0
}

func (d *doctor) group(ctx context.Context, look *consumer.Inspector) {
	what := "group " + d.env.Kafka.Group
	g, err := look.Group(ctx)
	switch {
	case err != nil:
		d.fail(what, err, "grant READ and DESCRIBE on the group "+d.env.Kafka.Group)
	case len(g.Foreign) > 0:
		d.fail(what, fmt.Errorf("other programs are in it: %s", strings.Join(g.Foreign, "; ")),
			"give Assay a group of its own: ASSAY_KAFKA_GROUP; programs with different clients cannot share one")
	case g.Ours == 0:
		d.ok(what, "nobody else is in it; no assay run is reading now")
	default:
		d.ok(what, fmt.Sprintf("%d members, all of them assay (%s)", g.Ours, strings.ToLower(g.State)))
	}
}

// reach is how far a restart looks back, for both halves of a call.
func (d *doctor) topic(topic string, t consumer.TopicState, reach time.Duration) {
	what := "topic " + topic
	if len(t.Partitions) == 0 {
		d.fail(what, errors.New("does not exist, or this client may not see it"),
			"create it, or grant READ and DESCRIBE; assay run waits for it")
		return
	}
	leaderless := 0
	for _, p := range t.Partitions {
		if !p.Leader {
			leaderless++
		}
	}
	perSecond := float64(t.LastHour) / 3600
	switch {
	case leaderless > 0:
		d.fail(what, fmt.Errorf("%d of %d partitions have no leader that answers", leaderless, len(t.Partitions)), "look at the brokers: a broker is down, or its replicas are")
	case t.ReadErr != nil:
		d.fail(what, fmt.Errorf("records cannot be read: %w", t.ReadErr), "grant READ on the topic")
	case t.CommitErr != nil:
		d.fail(what, t.CommitErr, "grant READ on the group "+d.env.Kafka.Group)
	default:
		d.ok(what, fmt.Sprintf("%d partitions, so at most that many workers; %s records in the last hour (%.1f/s)",
			len(t.Partitions), grouped(t.LastHour), perSecond))
	}
	d.loads = append(d.loads, topicLoad{topic, len(t.Partitions), perSecond})
	d.topicSettings(what, t, reach)
	if t.CommitErr == nil {
		d.offsets(what, t)
	}
}

func (d *doctor) topicSettings(what string, t consumer.TopicState, reach time.Duration) {
	s := t.Settings
	if t.SettingsErr != nil {
		d.warn(what+": settings", t.SettingsErr.Error(), "grant DESCRIBE_CONFIGS on the topic if you want retention and sizes looked at; reading needs it not")
		return
	}
	retention := "for ever"
	if s.Deletes && s.Retention > 0 {
		retention = "for " + days(s.Retention)
	}
	behind := time.Duration(0)
	if !t.Behind.IsZero() {
		behind = time.Since(t.Behind)
	}
	switch {
	case s.Compacted:
		d.warn(what+": policy", "cleanup.policy has compact: of records with the same key only the last is kept, so what a slow or stopped worker has not read yet goes without a trace, and a deleted key leaves a tombstone (skipped)",
			"write interactions to a topic with cleanup.policy=delete, or give every record a key of its own")
	case s.Deletes && s.Retention > 0 && s.Retention < reach:
		d.warn(what+": policy", fmt.Sprintf("records are kept %s, less than the %s that a restart looks back for halves of one interaction", retention, reach),
			"raise retention.ms, or lower the source's join_wait")
	case s.Deletes && s.Retention > 0 && behind > s.Retention/2:
		d.warn(what+": policy", fmt.Sprintf("records are kept %s, and the group is %s behind: soon they go unread", retention, days(behind)),
			"add workers up to the partitions, lower sample.rate, or raise retention.ms")
	default:
		d.ok(what+": policy", "records are kept "+retention)
	}
	if limit := int64(d.env.Decode.MaxRecord); s.MaxMessage > limit {
		d.warn(what+": sizes", fmt.Sprintf("takes batches up to %s bytes; a record over %s becomes a dead letter (record_over_limit)", grouped(s.MaxMessage), d.env.Decode.MaxRecord),
			"raise ASSAY_DECODE_MAX_RECORD (and ASSAY_DECODE_MAX_INFLATED), or lower the topic's max.message.bytes")
	}
}

func (d *doctor) offsets(what string, t consumer.TopicState) {
	var none, lost, beyond, lag, records int64
	for _, p := range t.Partitions {
		records += p.End - p.Start
		switch {
		case p.Committed < 0:
			none++
		case p.Committed > p.End:
			beyond++
		default:
			lost += max(p.Start-p.Committed, 0)
			lag += p.End - max(p.Committed, p.Start)
		}
	}
	what += ": offsets"
	switch {
	case beyond > 0:
		d.fail(what, fmt.Errorf("on %d partitions the group has committed more than the log holds: the topic was made anew or cut", beyond),
			"ASSAY_KAFKA_ON_OFFSET_BEYOND_END=reset reads the new log from its start")
	case lost > 0:
		d.warn(what, fmt.Sprintf("retention took %s records before the group read them; %s wait", grouped(lost), grouped(lag)),
			"raise retention.ms or add workers; what is gone is counted in assay_consumer_skipped_offsets_total")
	case none == int64(len(t.Partitions)) && d.env.Kafka.Start == "earliest":
		d.ok(what, fmt.Sprintf("nothing is committed: ASSAY_KAFKA_START=earliest reads, and pays for, all %s records", grouped(records)))
	case none == int64(len(t.Partitions)):
		d.ok(what, fmt.Sprintf("nothing is committed: ASSAY_KAFKA_START=%s leaves the %s records there are", d.env.Kafka.Start, grouped(records)))
	case lag == 0:
		d.ok(what, "the group has read everything")
	default:
		says := fmt.Sprintf("%s records wait", grouped(lag))
		if !t.Behind.IsZero() {
			says += ", the oldest for " + days(time.Since(t.Behind))
		}
		d.ok(what, says)
	}
}

// grouped writes a count with thousands separated.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// days writes a duration for people: days and hours, or what is less.
func days(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.1f hours", d.Hours())
	}
	return d.Round(time.Second).String()
}
