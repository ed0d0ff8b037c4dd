import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads topics with Kafka's own client, read_committed: the names come line by line from standard input. For each message it prints
 * a line: partition, the partition of its key by Java's partitioner, offset, timestamp, key and value (Base64, - for null). A line
 * with a point ends a topic. A commit is confirmed before readers may see its messages: a topic is read up to what stands there when
 * its reading begins, whether it may be seen yet or not.
 */
public final class History {
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Admin admin;
    private final BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out));

    private History(String servers) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        admin = Admin.create(Map.of("bootstrap.servers", servers));
    }

    public static void main(String[] arguments) throws Exception {
        History history = new History(arguments[0]);
        BufferedReader topics = new BufferedReader(new InputStreamReader(System.in));
        for (String topic = topics.readLine(); topic != null; topic = topics.readLine()) {
            history.read(topic);
        }
    }

    private void read(String topic) throws Exception {
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(each -> new TopicPartition(topic, each.partition()))
                .toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, OffsetSpec> ends = partitions.stream()
                .collect(Collectors.toMap(Function.identity(), each -> OffsetSpec.latest()));
        var found = admin.listOffsets(ends).all().get();
        while (partitions.stream().anyMatch(each -> consumer.position(each) < found.get(each).offset())) {
            for (ConsumerRecord<byte[], byte[]> message : consumer.poll(PATIENCE)) {
                print(message, partitions.size());
            }
        }
        out.write(".\n");
        out.flush();
    }

    private void print(ConsumerRecord<byte[], byte[]> message, int partitions) throws Exception {
        int place = message.key() == null ? -1 : Utils.toPositive(Utils.murmur2(message.key())) % partitions;
        out.write(message.partition() + "\t" + place + "\t" + message.offset() + "\t" + message.timestamp()
                + "\t" + text(message.key()) + "\t" + text(message.value()) + "\n");
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
