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
        case "--usual" -> request.usual = true;
        case "--threads" -> request.threads = Integer.parseInt(args[next++]);
        case "--like-broker" -> request.likeBroker = true;
        case "--segment-bytes" -> request.segmentBytes = Integer.parseInt(args[next++]);
        case "--queue-bytes" -> request.queueBytes = Integer.parseInt(args[next++]);
        case "--seconds" -> request.seconds = Double.parseDouble(args[next++]);
        case "--warm-up-seconds" -> request.warmUpSeconds = Double.parseDouble(args[next++]);
        case "--body-bytes" -> request.bodyBytes = Integer.parseInt(args[next++]);
        case "--batch-size" -> request.batchSize = Integer.parseInt(args[next++]);
        case "--message-count" -> request.messageCount = Long.parseLong(args[next++]);
        case "--max-bytes" -> request.maxBytes = Long.parseLong(args[next++]);
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
      case "bench" -> request.workload = spec;
      default -> throw new IllegalArgumentException(request.op + " takes no " + spec);
    }
  }
}
