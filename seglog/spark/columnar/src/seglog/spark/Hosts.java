package seglog.spark;

import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** IPv4 addresses and message ids as text; caches the last address, because adjacent ones are often equal. */
final class Hosts {
    private static final byte[] DIGITS = "0123456789ABCDEF".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    private static final int PLACE_AT = 28, PLACE_BYTES = 8, PORT_AT = 4;
    private long last;
    private UTF8String lastText;

    UTF8String text(long host) {
        long raw = Platform.getLong(null, host);
        if (lastText == null || raw != last) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < PORT_AT; i++)
                text.append(Platform.getByte(null, host + i) & 0xFF).append(i + 1 < PORT_AT ? '.' : ':');
            lastText = UTF8String.fromString(text.append(LogRows.bigInt(host + PORT_AT)).toString());
            last = raw;
        }
        return lastText;
    }

    /** Returns the offsetMsgId: store host and physical offset in hexadecimal. */
    static UTF8String messageId(LogRows rows, int row) {
        int hostBytes = rows.storeHostBytes(row);
        byte[] text = new byte[2 * (hostBytes + PLACE_BYTES)];
        write(text, 0, rows.storeHost(row), hostBytes);
        write(text, 2 * hostBytes, rows.record(row) + PLACE_AT, PLACE_BYTES);
        return UTF8String.fromBytes(text);
    }

    private static void write(byte[] text, int at, long address, int size) {
        for (int i = 0; i < size; i++) {
            byte one = Platform.getByte(null, address + i);
            text[at + 2 * i] = DIGITS[one >> 4 & 15];
            text[at + 2 * i + 1] = DIGITS[one & 15];
        }
    }
}
