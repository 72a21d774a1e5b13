package seglog.judge;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Carries out one {@link Request}; each opens and closes its own store. */
final class Commands {
  private Commands() {}

  /** Returns false when the process should not open another store. */
  static boolean run(Request request, Answers answers) throws Exception {
    return switch (request.op) {
      case "dump" -> dump(request, answers);
      case "append" -> append(request, answers);
      case "write" -> write(request, answers);
      case "probe" -> probe(request, answers);
      case "compact" -> compact(request, answers);
      case "timers" -> timers(request, answers);
      case "hold" -> hold(request, answers);
      case "trylock" -> tryLock(request, answers);
      case "brokerStart",
          "brokerAsk",
          "nameServerRestart",
          "brokerStop",
          "brokerHalt",
          "memberStart",
          "memberLook",
          "memberStop" ->
          Brokers.run(request, answers);
      case "admin" -> {
        if (request.nameServers == null) {
          yield Brokers.run(request, answers);
        }
        AdminTool.run(request.arguments, request.nameServers, answers);
        yield true;
      }
      case "clientId" -> {
        Members.clientId(request, answers);
        yield true;
      }
      case "bench" -> {
        Bench.run(request, answers);
        yield true;
      }
      default -> throw new IllegalArgumentException("unknown op " + request.op);
    };
  }

  private static boolean dump(Request request, Answers answers) throws Exception {
    boolean hadAbort = Files.exists(Path.of(request.dir, "abort"));
    RealStore store;
    try {
      store = RealStore.openBriefly(request);
    } catch (StoreRefusedException refusal) {
      answers.line("openFailed").put("error", refusal.getMessage()).send();
      return false;
    }
    try (store) {
      store.awaitDispatch();
      new StoreDump(store.engine(), answers).run(hadAbort);
      ask(request.probes, store, answers);
    }
    return true;
  }

  private static boolean append(Request request, Answers answers) throws Exception {
    try (RealStore store = RealStore.openBriefly(request)) {
      Appender appender = new Appender(store.engine(), answers);
      for (MessageSpec spec : request.messages) {
        appender.append(spec);
      }
      if (request.halt) {
        answers.line("end").put("sound", false).send();
        Runtime.getRuntime().halt(0);
      }
      store.awaitDispatch();
    }
    return true;
  }

  private static boolean write(Request request, Answers answers) throws Exception {
    if (Files.exists(Path.of(request.dir, "commitlog"))) {
      throw new IOException(request.dir + " holds a store already");
    }
    Files.createDirectories(Path.of(request.dir));
    return append(request, answers);
  }

  private static boolean probe(Request request, Answers answers) throws Exception {
    try (RealStore store = RealStore.openBriefly(request)) {
      store.awaitDispatch();
      ask(request.probes, store, answers);
    }
    return true;
  }

  private static void ask(List<Probe> probes, RealStore store, Answers answers) {
    for (Probe probe : probes) {
      probe.ask(store.engine(), answers);
    }
  }

  /** Compacts, then answers the probes of the request from the running store. */
  private static boolean compact(Request request, Answers answers) throws Exception {
    try (RealStore store = RealStore.openBriefly(request)) {
      store.awaitDispatch();
      new Compaction(store.engine(), answers).run();
      ask(request.probes, store, answers);
      if (request.halt) {
        answers.line("end").put("sound", false).send();
        Runtime.getRuntime().halt(0);
      }
    }
    return true;
  }

  /** Runs the timers of stores at once, for the seconds of the request. */
  private static boolean timers(Request request, Answers answers) throws Exception {
    List<RealStore> opened = new ArrayList<>();
    List<Timers> timers = new ArrayList<>();
    for (Request each : request.stores) {
      RealStore store = RealStore.openBriefly(each);
      opened.add(store);
      store.awaitDispatch();
      timers.add(Timers.start(store.engine()));
    }
    Thread.sleep((long) (request.seconds * 1000));
    for (Timers timer : timers) {
      timer.stop(answers);
    }
    for (RealStore store : opened) {
      store.awaitDispatch();
      store.close();
    }
    return true;
  }

  /** Keeps the store open until standard input ends or the time is up. */
  private static boolean hold(Request request, Answers answers) throws Exception {
    try (RealStore store = RealStore.openBriefly(request)) {
      store.awaitDispatch();
      answers.line("ready").put("pid", ProcessHandle.current().pid()).send();
      Thread reader = new Thread(Commands::readToEnd, "stdin");
      reader.setDaemon(true);
      reader.start();
      reader.join((long) (request.seconds * 1000));
    }
    return true;
  }

  private static void readToEnd() {
    try {
      System.in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException error) {
      error.printStackTrace();
    }
  }

  private static boolean tryLock(Request request, Answers answers) throws Exception {
    try {
      RealStore.openBriefly(request).close();
      answers.line("lock").put("started", true).put("error", null).send();
      return true;
    } catch (StoreRefusedException refusal) {
      if (request.likeBroker) {
        refusal.shutDownAsBrokerDoes();
      }
      answers.line("lock").put("started", false).put("error", refusal.getMessage()).send();
      return false;
    }
  }
}
