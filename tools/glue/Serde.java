import com.amazonaws.services.schemaregistry.deserializers.GlueSchemaRegistryKafkaDeserializer;
import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import com.amazonaws.services.schemaregistry.serializers.json.JsonDataWithSchema;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;

/** Writes and reads messages with Amazon's own serializers: a JSON object a line in, one out. The arguments: endpoint and region. */
public class Serde {
  static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode asked = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      try {
        if (asked.has("message")) {
          answer.put("value", read(args, asked));
        } else {
          answer.put("message", Base64.getEncoder().encodeToString(written(args, asked)));
        }
      } catch (Exception error) {
        answer.put("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
      }
      System.out.println(JSON.writeValueAsString(answer));
    }
  }

  static Map<String, Object> settings(String[] args, JsonNode asked) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("endpoint", args[0]);
    settings.put("region", args[1]);
    settings.put("schemaAutoRegistrationEnabled", "true");
    settings.put("dataFormat", asked.get("kind").asText());
    settings.put("schemaName", asked.get("name").asText());
    settings.put("compression", asked.path("compression").asText("NONE"));
    settings.put("avroRecordType", "GENERIC_RECORD");
    settings.put("protobufMessageType", "DYNAMIC_MESSAGE");
    return settings;
  }

  static StaticCredentialsProvider credentials() {
    return StaticCredentialsProvider.create(AwsBasicCredentials.create("id", "key"));
  }

  static byte[] written(String[] args, JsonNode asked) throws Exception {
    try (GlueSchemaRegistryKafkaSerializer serializer =
        new GlueSchemaRegistryKafkaSerializer(credentials(), settings(args, asked))) {
      return serializer.serialize("topic", value(asked));
    }
  }

  static Object value(JsonNode asked) throws Exception {
    switch (asked.get("kind").asText()) {
      case "AVRO":
        Schema schema = new Schema.Parser().parse(asked.get("schema").asText());
        return new GenericDatumReader<GenericRecord>(schema)
            .read(null, DecoderFactory.get().jsonDecoder(schema, asked.get("value").asText()));
      case "JSON":
        return JsonDataWithSchema.builder(asked.get("schema").asText(), asked.get("value").asText()).build();
      default:
        FileDescriptorProto file = FileDescriptorProto.parseFrom(asked.get("file").binaryValue());
        FileDescriptor descriptor = FileDescriptor.buildFrom(file, new FileDescriptor[0]);
        com.google.protobuf.Descriptors.Descriptor type = null;
        for (String part : asked.get("type").asText().split("\\.")) {
          type = type == null ? descriptor.findMessageTypeByName(part) : type.findNestedTypeByName(part);
        }
        return DynamicMessage.parseFrom(type, ByteString.copyFrom(asked.get("value").binaryValue()));
    }
  }

  /** Avro and JSON as JSON; a message of Protobuf as its name and its bytes. */
  static String read(String[] args, JsonNode asked) throws Exception {
    try (GlueSchemaRegistryKafkaDeserializer deserializer =
        new GlueSchemaRegistryKafkaDeserializer(credentials(), settings(args, asked))) {
      Object found = deserializer.deserialize("topic", asked.get("message").binaryValue());
      if (found instanceof GenericRecord) {
        GenericRecord record = (GenericRecord) found;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        var encoder = EncoderFactory.get().jsonEncoder(record.getSchema(), out);
        new GenericDatumWriter<GenericRecord>(record.getSchema()).write(record, encoder);
        encoder.flush();
        return out.toString("UTF-8");
      }
      if (found instanceof Message) {
        Message message = (Message) found;
        String bytes = Base64.getEncoder().encodeToString(message.toByteArray());
        return message.getDescriptorForType().getFullName() + " " + bytes;
      }
      return ((JsonDataWithSchema) found).getPayload();
    }
  }
}
