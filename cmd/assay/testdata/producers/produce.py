"""Writes calls to Kafka as programs in Python do.

Standard input has one call a line: {"id", "input", "output", "tenant"}. Standard output
gets the id of each, as it can be read from what was written.

    produce.py avro BROKER TOPIC REGISTRY     Confluent's Avro serializer
    produce.py otlp BROKER TOPIC              batches of an OpenTelemetry exporter
"""

import json
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

SCHEMA = """
{"type": "record", "name": "Call", "namespace": "parcels", "fields": [
  {"name": "id", "type": "string"},
  {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "input", "type": "string"},
  {"name": "output", "type": ["null", "string"], "default": null},
  {"name": "metadata", "type": {"type": "map", "values": "string"}}
]}
"""


def calls():
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


class Kafka:
    """A producer that tells when a message was not taken."""

    def __init__(self, broker):
        self.producer = Producer({"bootstrap.servers": broker, "acks": "all", "compression.type": "zstd"})
        self.lost = []

    def write(self, topic, value, headers=None):
        self.producer.produce(topic, value=value, headers=headers, on_delivery=lambda err, _: err and self.lost.append(err))
        self.producer.poll(0)

    def close(self):
        left = self.producer.flush(60)
        if left or self.lost:
            sys.exit(f"{left} messages were not written, {len(self.lost)} were refused: {self.lost[:1]}")


def avro(broker, topic, registry):
    kafka, client = Kafka(broker), SchemaRegistryClient({"url": registry})
    # the id in front of the value, as it has always been, and in a header
    prefixed = AvroSerializer(client, SCHEMA)
    in_header = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": header_schema_id_serializer})
    for n, call in enumerate(calls()):
        headers = []
        context = SerializationContext(topic, MessageField.VALUE, headers)
        record = {
            "id": call["id"],
            "time": call["time"],
            "input": call["input"],
            "output": call["output"],
            "metadata": {"tenant": call["tenant"]},
        }
        kafka.write(topic, (in_header if n % 2 else prefixed)(record, context), headers)
        print(call["id"])
    kafka.close()


class ToKafka(SpanExporter):
    """What the collector's Kafka exporter writes: the bytes of the OTLP exporter."""

    def __init__(self, kafka, topic):
        self.kafka, self.topic = kafka, topic

    def export(self, spans):
        self.kafka.write(self.topic, encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


def otlp(broker, topic):
    kafka = Kafka(broker)
    provider = TracerProvider(resource=Resource.create({"service.name": "parcels", "deployment.environment.name": "test"}))
    provider.add_span_processor(BatchSpanProcessor(ToKafka(kafka, topic), max_export_batch_size=32))
    tracer = provider.get_tracer("parcels")

    def messages(role, text):
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    for call in calls():
        # an agent stands around the call, and a look into a database beside it
        with tracer.start_as_current_span("invoke_agent parcels") as agent:
            agent.set_attribute("gen_ai.operation.name", "invoke_agent")
            with tracer.start_as_current_span("SELECT parcels") as query:
                query.set_attribute("db.system.name", "postgresql")
            with tracer.start_as_current_span("chat m-1") as span:
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.request.model", "m-1")
                span.set_attribute("gen_ai.usage.input_tokens", len(call["input"]))
                span.set_attribute("gen_ai.input.messages", messages("user", call["input"]))
                span.set_attribute("gen_ai.output.messages", messages("assistant", call["output"]))
                span.set_attribute("parcels.tenant", call["tenant"])
                c = span.get_span_context()
                print(f"{c.trace_id:032x}/{c.span_id:016x}")
    provider.shutdown()
    kafka.close()


if __name__ == "__main__":
    {"avro": avro, "otlp": otlp}[sys.argv[1]](*sys.argv[2:])
