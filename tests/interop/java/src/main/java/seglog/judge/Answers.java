package seglog.judge;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Where answers go: one JSON object a line, its {@code kind} first. */
final class Answers {
  private final PrintStream out;

  Answers(PrintStream out) {
    this.out = new PrintStream(out, true, StandardCharsets.UTF_8);
  }

  Line line(String kind) {
    return new Line(kind);
  }

  /** One answer; keys appear in the order they were put. */
  final class Line {
    private final Map<String, Object> fields = new LinkedHashMap<>();

    private Line(String kind) {
      fields.put("kind", kind);
    }

    Line put(String key, Object value) {
      fields.put(key, value);
      return this;
    }

    Line putAll(Map<String, Object> values) {
      fields.putAll(values);
      return this;
    }

    void send() {
      out.println(Json.print(fields));
    }
  }
}
