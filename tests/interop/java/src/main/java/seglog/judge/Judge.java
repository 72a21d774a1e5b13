package seglog.judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * The real Apache RocketMQ store as a command line, so that tests can ask what it makes of a
 * directory.
 *
 * <pre>
 *   Judge dump DIR [options]              what the store serves, as JSON lines
 *   Judge append DIR SPEC [options]       adds messages (SPEC: JSON, see {@link MessageSpec})
 *   Judge write DIR SPEC [options]        the same in a directory that holds no store yet
 *   Judge probe DIR SPEC [options]        answers of getMessage, of offset by time and of the index
 *   Judge compact DIR [SPEC] [options]    compacts the compaction topics, then answers as probe
 *   Judge timers                          runs the timers of the stores of a request for some seconds
 *   Judge hold DIR [options]              keeps the store open until standard input ends
 *   Judge trylock DIR [options]           whether the store can be loaded and started
 *   Judge serve                           requests as JSON lines on standard input, bench among them:
 *                                         a measurement, see {@link Bench}, and those to a broker,
 *                                         see {@link Brokers}
 * </pre>
 *
 * <p>Every command opens the directory read-write, as a broker would: recovery may change it. Each
 * answer is one JSON object a line on standard output and ends with a line of kind {@code end};
 * everything else goes to standard error.
 */
public final class Judge {
  private Judge() {}

  /** Runs one command, or serves requests until standard input ends. */
  public static void main(String[] args) throws IOException {
    Answers answers = new Answers(System.out);
    // RocketMQ prints to standard output here and there; the answers must stay clean.
    System.setOut(new PrintStream(System.err, true, StandardCharsets.UTF_8));
    boolean isSound =
        args.length > 0 && args[0].equals("serve")
            ? serve(answers)
            : run(CommandLine.parse(args), answers);
    // Not exit(): a store that failed to start leaves threads behind, and no hook of its may run.
    Runtime.getRuntime().halt(isSound ? 0 : 3);
  }

  /**
   * Answers requests until standard input ends, or until one leaves this process unfit.
   *
   * <p>A store that failed to open cannot be closed: it would remove the abort file of whoever
   * holds the directory. What it left in this process goes away only with the process.
   */
  private static boolean serve(Answers answers) throws IOException {
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      if (!run(Json.parse(line, Request.class), answers)) {
        return false;
      }
    }
    return true;
  }

  /** Runs one request; false when this process should not open another store. */
  private static boolean run(Request request, Answers answers) {
    boolean isSound = false;
    try {
      isSound = Commands.run(request, answers);
    } catch (Exception | LinkageError | OutOfMemoryError error) {
      error.printStackTrace();
      answers.line("failed").put("error", error.toString()).send();
    }
    answers.line("end").put("sound", isSound).send();
    return isSound;
  }
}
