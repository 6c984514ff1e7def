package decode

import "bytes"

// A key is a top-level member name that some family or field rule asks for. One pass
// over an object puts the asked-for values into slots by key; signatures and field
// rules then cost an index each, whatever else the object holds.
type key uint8

const (
	noKey key = iota

	// names of section "flat": texts
	kInput
	kQuestion
	kQuery
	kPrompt
	kUserInput
	kVars
	kRequest
	kOutput
	kAnswer
	kResponse
	kActualOutput
	kCompletion
	kSampled
	kPrediction
	kExpected
	kExpectedOutput
	kReference
	kGroundTruth
	kIdeal
	kTarget
	kRetrievalContext
	kContexts
	kRetrievedContexts
	kContext
	kDocuments
	kCriteria
	kRubric

	// what a record says about itself
	kID
	kUnderscoreID
	kInteractionID
	kRequestID
	kTime
	kTimestamp
	kTS
	kCreatedAt
	kStartTime
	kEndTime
	kTimestampMS
	kApp
	kApplication
	kService
	kAgent
	kModel
	kRoute
	kRouteName
	kPromptName
	kPromptVersion
	kTenant
	kTenantID
	kEnvironment
	kEnv
	kSessionID
	kConversationID
	kThreadID
	kSessionIDCamel
	kSession
	kUserID
	kUser
	kInputUser
	kUserIDCamel
	kTraceID
	kTraceIDCamel
	kInputTokens
	kPromptTokens
	kOutputTokens
	kCompletionTokens
	kUsage
	kLatencyMS
	kDurationMS
	kLatency
	kCompletionTime
	kFeedback
	kStatus
	kStatusCode
	kError
	kMetadata
	kAttributes

	// provider bodies
	kReq
	kResp
	kRequestBodySnake
	kResponseBodySnake
	kMessages
	kChoices
	kObject
	kType
	kContent
	kStopReason

	// signatures of the other families and envelopes
	kSchema
	kPayload
	kOp
	kAfter
	kAggregateType
	kDeleted
	kSpecVersion
	kData
	kDataBase64
	kMessageType
	kLogEvents
	kResourceSpans
	kResourceLogs
	kSchemaType
	kBatch
	kPost
	kPatch
	kRunType
	kDottedOrder
	kInputs
	kCallType
	kStartTimeCamel
	kAI
	kLatencies
	kStartedAt
	kLLMSummary
	kLLMRequest
	kApisixLatency
	kHeliconeMeta
	kRequestCreatedAt
	kDatabricksID
	kInvocationID
	kGateway
	kRequestBodyPascal
	kResponseBodyPascal
	kTokensIn
	kTokensOut
	kRecords
	kCorrelationID
	kSequenceNumber
	kXRequestID

	// names of signatures that may as well be anyone's attributes
	kRunID
	kKey
	kScore
	kValue

	numKeys
)

// keyOf finds the key of a member name. The compiler makes this a search without a
// copy of the name.
func keyOf(name []byte) key {
	switch string(name) {
	case "input":
		return kInput
	case "question":
		return kQuestion
	case "query":
		return kQuery
	case "prompt":
		return kPrompt
	case "user_input":
		return kUserInput
	case "vars":
		return kVars
	case "request":
		return kRequest
	case "output":
		return kOutput
	case "answer":
		return kAnswer
	case "response":
		return kResponse
	case "actual_output":
		return kActualOutput
	case "completion":
		return kCompletion
	case "sampled":
		return kSampled
	case "prediction":
		return kPrediction
	case "expected":
		return kExpected
	case "expected_output":
		return kExpectedOutput
	case "reference":
		return kReference
	case "ground_truth":
		return kGroundTruth
	case "ideal":
		return kIdeal
	case "target":
		return kTarget
	case "retrieval_context":
		return kRetrievalContext
	case "contexts":
		return kContexts
	case "retrieved_contexts":
		return kRetrievedContexts
	case "context":
		return kContext
	case "documents":
		return kDocuments
	case "criteria":
		return kCriteria
	case "rubric":
		return kRubric
	case "id":
		return kID
	case "_id":
		return kUnderscoreID
	case "interaction_id":
		return kInteractionID
	case "request_id":
		return kRequestID
	case "time":
		return kTime
	case "timestamp":
		return kTimestamp
	case "ts":
		return kTS
	case "created_at":
		return kCreatedAt
	case "start_time":
		return kStartTime
	case "end_time":
		return kEndTime
	case "timestamp_ms":
		return kTimestampMS
	case "app":
		return kApp
	case "application":
		return kApplication
	case "service":
		return kService
	case "agent":
		return kAgent
	case "model":
		return kModel
	case "route":
		return kRoute
	case "route_name":
		return kRouteName
	case "prompt_name":
		return kPromptName
	case "prompt_version":
		return kPromptVersion
	case "tenant":
		return kTenant
	case "tenant_id":
		return kTenantID
	case "environment":
		return kEnvironment
	case "env":
		return kEnv
	case "session_id":
		return kSessionID
	case "conversation_id":
		return kConversationID
	case "thread_id":
		return kThreadID
	case "sessionId":
		return kSessionIDCamel
	case "session":
		return kSession
	case "user_id":
		return kUserID
	case "user":
		return kUser
	case "input_user":
		return kInputUser
	case "userId":
		return kUserIDCamel
	case "trace_id":
		return kTraceID
	case "traceId":
		return kTraceIDCamel
	case "input_tokens":
		return kInputTokens
	case "prompt_tokens":
		return kPromptTokens
	case "output_tokens":
		return kOutputTokens
	case "completion_tokens":
		return kCompletionTokens
	case "usage":
		return kUsage
	case "latency_ms":
		return kLatencyMS
	case "duration_ms":
		return kDurationMS
	case "latency":
		return kLatency
	case "completion_time":
		return kCompletionTime
	case "feedback":
		return kFeedback
	case "status":
		return kStatus
	case "status_code":
		return kStatusCode
	case "error":
		return kError
	case "metadata":
		return kMetadata
	case "attributes":
		return kAttributes
	case "req":
		return kReq
	case "resp":
		return kResp
	case "request_body":
		return kRequestBodySnake
	case "response_body":
		return kResponseBodySnake
	case "messages":
		return kMessages
	case "choices":
		return kChoices
	case "object":
		return kObject
	case "type":
		return kType
	case "content":
		return kContent
	case "stop_reason":
		return kStopReason
	case "schema":
		return kSchema
	case "payload":
		return kPayload
	case "op":
		return kOp
	case "after":
		return kAfter
	case "aggregatetype":
		return kAggregateType
	case "__deleted":
		return kDeleted
	case "specversion":
		return kSpecVersion
	case "data":
		return kData
	case "data_base64":
		return kDataBase64
	case "messageType":
		return kMessageType
	case "logEvents":
		return kLogEvents
	case "resourceSpans", "resource_spans":
		return kResourceSpans
	case "resourceLogs", "resource_logs":
		return kResourceLogs
	case "schemaType":
		return kSchemaType
	case "batch":
		return kBatch
	case "post":
		return kPost
	case "patch":
		return kPatch
	case "run_type":
		return kRunType
	case "dotted_order":
		return kDottedOrder
	case "inputs":
		return kInputs
	case "call_type":
		return kCallType
	case "startTime":
		return kStartTimeCamel
	case "ai":
		return kAI
	case "latencies":
		return kLatencies
	case "started_at":
		return kStartedAt
	case "llm_summary":
		return kLLMSummary
	case "llm_request":
		return kLLMRequest
	case "apisix_latency":
		return kApisixLatency
	case "heliconeMeta":
		return kHeliconeMeta
	case "request_created_at":
		return kRequestCreatedAt
	case "databricks_request_id":
		return kDatabricksID
	case "invocation_id":
		return kInvocationID
	case "Gateway":
		return kGateway
	case "RequestBody":
		return kRequestBodyPascal
	case "ResponseBody":
		return kResponseBodyPascal
	case "tokens_in":
		return kTokensIn
	case "tokens_out":
		return kTokensOut
	case "records":
		return kRecords
	case "CorrelationId":
		return kCorrelationID
	case "SequenceNumber":
		return kSequenceNumber
	case "x-request-id":
		return kXRequestID
	case "run_id":
		return kRunID
	case "key":
		return kKey
	case "score":
		return kScore
	case "value":
		return kValue
	}
	return noKey
}

// An object is one element of a record with its members in their slots.
type object struct {
	raw       value
	exact     [numKeys]value
	folded    map[key]value // names that match only when case is ignored; nil if there are none
	members   int
	duplicate bool // a name that is read stood twice; the last one counts
	genAI     bool // some name starts with gen_ai.
	found     *pair
}

func newObject(raw value) *object {
	o := new(object)
	o.fill(raw)
	return o
}

// fill reads the members of raw into an empty object.
func (o *object) fill(raw value) {
	o.raw = raw
	for w := walk(raw); w.next(); {
		o.members++
		name := w.key()
		k := keyOf(name)
		if k != noKey {
			o.duplicate = o.duplicate || o.exact[k] != nil
			o.exact[k] = w.val
			continue
		}
		if hasPrefix(name, "gen_ai.") {
			o.genAI = true
		}
		if lower, changed := lowered(name); changed {
			if k := keyOf(lower); k != noKey {
				if o.folded == nil {
					o.folded = make(map[key]value)
				}
				o.folded[k] = w.val
			}
		}
	}
}

// lowered is name in lower case, and whether that changed it. Names over 64 bytes
// are nobody's alias.
func lowered(name []byte) ([]byte, bool) {
	if len(name) > 64 || bytes.IndexFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return nil, false
	}
	return bytes.ToLower(name), true
}

// has reports whether a member of that exact name is there, null or not.
func (o *object) has(k key) bool { return o.exact[k] != nil }

// first returns the value of the first name that says something: exact names first,
// then names that differ in case only.
func (o *object) first(keys ...key) value {
	for _, k := range keys {
		if v := o.exact[k]; !v.absent() {
			return v
		}
	}
	if o.folded == nil {
		return nil
	}
	for _, k := range keys {
		if v := o.folded[k]; !v.absent() {
			return v
		}
	}
	return nil
}

// any reports whether one of the names is there, null or not, in any case.
func (o *object) any(keys ...key) bool {
	for _, k := range keys {
		if o.exact[k] != nil || o.folded[k] != nil {
			return true
		}
	}
	return false
}
