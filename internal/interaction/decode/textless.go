package decode

// TextSwitch says what makes a format's producers log the texts, for those that leave
// them out by default; empty for the others.
func TextSwitch(format string) string {
	switch format {
	case otlpJSON, otlpProto:
		return "instrumentations log no text until told to: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT (true, or span_only), " +
			"TRACELOOP_TRACE_CONTENT=true for OpenLLMetry, experimental_telemetry with recordInputs and recordOutputs for the Vercel AI SDK. " +
			"A batch over the exporter's limit (1,000,000 bytes by default) is refused before it reaches Kafka: text can be missing without a trace of it"
	case "kong":
		return "set logging.log_payloads (and log_statistics) to true in the AI plugin of the route"
	case "envoy_ai_gateway":
		return "an access log never has text; log the bodies with an external processor, or read the GenAI traces instead"
	case "azure":
		return "resource diagnostics have no text: turn on GatewayLlmLogs with logging of prompts and completions in API Management"
	case "helicone":
		return "its internal message has references only: export rows with request_body and response_body"
	case "cloudflare":
		return "the REST list has no bodies: use Logpush, with logging of payloads on (collect-log-payload) and without encryption"
	case "bedrock":
		return "turn on text data delivery in model invocation logging; bodies over 100 KB go to the object store, which is not read"
	case "databricks":
		return "bodies over its size limit are left out (logging_error_codes); shorten contexts, or log from the application"
	}
	return ""
}
