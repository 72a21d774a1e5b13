package seglog.judge;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Turns command-line arguments into a {@link Request}. */
final class CommandLine {
  private CommandLine() {}

  /**
   * Parses {@code OP DIR [SPEC|WORKLOAD] [--option value]...}.
   *
   * @throws IllegalArgumentException an argument is missing or unknown
   */
  static Request parse(String[] args) {
    if (args.length < 2) {
      throw new IllegalArgumentException("usage: Judge OP DIR [SPEC] [--option value]...");
    }
    Request request = new Request();
    request.op = args[0];
    request.dir = args[1];
    int next = 2;
    if (next < args.length && !args[next].startsWith("--")) {
      takeSpec(request, args[next++]);
    }
    Map<String, String> config = new LinkedHashMap<>();
    while (next < args.length) {
      String option = args[next++];
      switch (option) {
        case "--halt" -> request.halt = true;
        case "--like-broker" -> request.likeBroker = true;
        case "--segment-bytes" -> request.segmentBytes = Integer.parseInt(args[next++]);
        case "--queue-bytes" -> request.queueBytes = Integer.parseInt(args[next++]);
        case "--seconds" -> request.seconds = Double.parseDouble(args[next++]);
        case "--set" -> {
          String[] pair = args[next++].split("=", 2);
          config.put(pair[0], pair[1]);
        }
        default -> throw new IllegalArgumentException("unknown option " + option);
      }
    }
    request.config = config;
    return request;
  }

  private static void takeSpec(Request request, String spec) {
    switch (request.op) {
      case "append", "write" -> request.messages = List.of(Json.parse(spec, MessageSpec[].class));
      case "probe", "compact" -> request.probes = List.of(Json.parse(spec, Probe[].class));
      default -> throw new IllegalArgumentException(request.op + " takes no " + spec);
    }
  }
}
