import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.FileInputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;

/** Runs a connector in this process, and prints each message: its topic, its key and its value in base64. */
public class Engine {
    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        try (var file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var engine = DebeziumEngine.create(Json.class)
                .using(properties)
                .notifying((ChangeEvent<String, String> event) -> out.println(
                        event.destination() + "\t" + encoded(event.key()) + "\t" + encoded(event.value())))
                .using((success, message, error) -> {
                    if (!success) {
                        System.err.println(message);
                    }
                })
                .build();
        engine.run();
    }

    private static String encoded(String text) {
        return text == null ? "-" : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
