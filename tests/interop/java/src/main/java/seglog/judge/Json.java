package seglog.judge;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;

/** JSON in and out: nulls are written, and nothing is escaped for HTML. */
final class Json {
  private static final Gson GSON =
      new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  private Json() {}

  static <T> T parse(String text, Class<T> type) {
    return GSON.fromJson(text, type);
  }

  static String print(Object value) {
    return GSON.toJson(value);
  }
}
