package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/demo"
	"assay/internal/testkit"
)

// A client that may see a topic and nothing more: each right that is missing is named
// by itself. The cluster answers as one with access lists does.
func TestDoctorNamesTheRightThatIsMissing(t *testing.T) {
	inParallel(t)
	file := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(file, []byte(killChecks("http://127.0.0.1:1/v1")), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(key kmsg.Key, refuse func(kmsg.Request) kmsg.Response, what, state string, parts ...string) {
		t.Helper()
		kafka, err := demo.StartKafka(demo.KafkaOptions{Topics: []string{killTopic}})
		if err != nil {
			t.Fatal(err)
		}
		defer kafka.Close()
		kafka.Cluster.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			kafka.Cluster.KeepControl()
			return refuse(req), nil, true
		})
		found := examined(t, map[string]string{"ASSAY_CHECKS": file, "ASSAY_KAFKA_BROKERS": strings.Join(kafka.Addrs(), ","), "ASSAY_KAFKA_GROUP": "g"}, "kafka")
		says(t, found, what, state, parts...)
	}

	f(kmsg.Fetch, func(req kmsg.Request) kmsg.Response {
		r := req.(*kmsg.FetchRequest)
		res := r.ResponseKind().(*kmsg.FetchResponse)
		for _, rt := range r.Topics {
			st := kmsg.NewFetchResponseTopic()
			st.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				sp := kmsg.NewFetchResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.TopicAuthorizationFailed.Code
				st.Partitions = append(st.Partitions, sp)
			}
			res.Topics = append(res.Topics, st)
		}
		return res
	}, "topic "+killTopic, stateFail, "records cannot be read", "Topic Authorization Failed", "grant READ on the topic")

	f(kmsg.OffsetFetch, func(req kmsg.Request) kmsg.Response {
		r := req.(*kmsg.OffsetFetchRequest)
		res := r.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, rt := range r.Topics {
			st := kmsg.NewOffsetFetchResponseTopic()
			st.Topic = rt.Topic
			for _, p := range rt.Partitions {
				sp := kmsg.NewOffsetFetchResponseTopicPartition()
				sp.Partition, sp.ErrorCode = p, kerr.GroupAuthorizationFailed.Code
				st.Partitions = append(st.Partitions, sp)
			}
			res.Topics = append(res.Topics, st)
		}
		return res
	}, "topic "+killTopic, stateFail, "Group Authorization Failed", "grant READ on the group g")

	f(kmsg.DescribeGroups, func(req kmsg.Request) kmsg.Response {
		r := req.(*kmsg.DescribeGroupsRequest)
		res := r.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for _, g := range r.Groups {
			sg := kmsg.NewDescribeGroupsResponseGroup()
			sg.Group, sg.ErrorCode = g, kerr.GroupAuthorizationFailed.Code
			res.Groups = append(res.Groups, sg)
		}
		return res
	}, "group g", stateFail, "Group Authorization Failed", "grant READ and DESCRIBE on the group g")

	f(kmsg.DescribeConfigs, func(req kmsg.Request) kmsg.Response {
		r := req.(*kmsg.DescribeConfigsRequest)
		res := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, rr := range r.Resources {
			sr := kmsg.NewDescribeConfigsResponseResource()
			sr.ResourceType, sr.ResourceName, sr.ErrorCode = rr.ResourceType, rr.ResourceName, kerr.TopicAuthorizationFailed.Code
			res.Resources = append(res.Resources, sr)
		}
		return res
	}, "topic "+killTopic+": settings", stateWarn, "Topic Authorization Failed", "DESCRIBE_CONFIGS")
}

// What a ClickHouse user may do is tried, on a server that has users: missing tables and
// who may make them, a worker that may not write.
func TestDoctorSeesWhatAClickHouseUserMayDo(t *testing.T) {
	inParallel(t)
	server := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{Accounts: []testkit.ClickHouseAccount{
		{Name: "owner", Password: "a", Grants: []string{"GRANT CREATE DATABASE, CREATE TABLE, ALTER TABLE, SELECT, INSERT ON *.*", "GRANT TABLE ENGINE ON ReplacingMergeTree"}},
		{Name: "worker", Password: "a", Grants: []string{"GRANT SELECT, INSERT ON assay.*"}},
		{Name: "reader", Password: "a", Grants: []string{"GRANT SELECT ON assay.*"}},
		{Name: "halfway", Password: "a", Grants: []string{"GRANT SELECT, INSERT ON assay.*", "REVOKE INSERT ON assay.population"}},
		{Name: "apart", Password: "a", Grants: []string{"GRANT SELECT, INSERT ON assay.migrations", "GRANT SELECT, INSERT ON assay.evaluations"}},
		{Name: "nobody", Password: "a", Grants: []string{"GRANT SELECT ON elsewhere.*"}},
	}})
	as := func(user string) []string {
		return []string{"ASSAY_CLICKHOUSE_ADDR=" + server.Native, "ASSAY_CLICKHOUSE_USERNAME=" + user, "ASSAY_CLICKHOUSE_PASSWORD=a",
			"ASSAY_CHECKS=" + filepath.Join(t.TempDir(), "none.yaml")}
	}
	f := func(user, what, state string, parts ...string) {
		t.Helper()
		env := make(map[string]string)
		for _, kv := range as(user) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		found := examined(t, env, "clickhouse")
		says(t, found, "clickhouse", stateOK, "user "+user)
		says(t, found, what, state, parts...)
	}

	f("worker", "tables", stateFail, "this user may not create them", "CREATE TABLE")
	f("owner", "tables", stateFail, "are missing", "this user may")
	root := newRoot(as("owner"))
	root.SetArgs([]string{"migrate"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	f("owner", "rights", stateOK)
	f("worker", "rights", stateOK, "SELECT and INSERT on all")
	f("reader", "rights", stateFail, "no INSERT on", "population", "GRANT INSERT")
	f("halfway", "rights", stateFail, "no INSERT on population: ")
	// a table that a user has no right on is not among those that it is shown
	f("apart", "rights", stateFail, "no SELECT on ", "population", "labels", "alarms")
	f("nobody", "tables", stateFail, "grant SELECT on the database assay")
}
