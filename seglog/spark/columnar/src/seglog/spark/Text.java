package seglog.spark;

import java.io.ByteArrayOutputStream;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Text from bytes of the log. Bytes that are not valid UTF-8 become U+FFFD, as in Python. */
final class Text {
    private static final long HIGH_BITS = 0x8080808080808080L;
    private static final byte[] REPLACEMENT = {(byte) 0xEF, (byte) 0xBF, (byte) 0xBD};

    private Text() {}

    static UTF8String at(long address, int size) {
        return isAscii(address, size) || isValid(address, size)
                ? UTF8String.fromAddress(null, address, size)
                : repaired(address, size);
    }

    private static boolean isAscii(long address, int size) {
        long at = address, end = address + size;
        for (; at + 8 <= end; at += 8)
            if ((Platform.getLong(null, at) & HIGH_BITS) != 0)
                return false;
        int bits = 0;
        for (; at < end; at++)
            bits |= Platform.getByte(null, at);
        return bits >= 0;
    }

    private static boolean isValid(long address, int size) {
        for (int at = 0, step; at < size; at += step) {
            step = sequence(address, at, size);
            if (step < 0)
                return false;
        }
        return true;
    }

    private static UTF8String repaired(long address, int size) {
        ByteArrayOutputStream found = new ByteArrayOutputStream(size + REPLACEMENT.length);
        for (int at = 0; at < size; ) {
            int step = sequence(address, at, size);
            if (step < 0)
                found.writeBytes(REPLACEMENT);
            for (int i = at; i < at + step; i++)
                found.write(Platform.getByte(null, address + i));
            at += Math.abs(step);
        }
        return UTF8String.fromBytes(found.toByteArray());
    }

    /** Returns the length of the sequence of a character; for invalid bytes their number, negative. */
    private static int sequence(long address, int at, int size) {
        int first = Platform.getByte(null, address + at) & 0xFF;
        if (first < 0x80)
            return 1;
        int length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
        if (length == 0)
            return -1;
        for (int i = 1; i < length; i++) {
            int next = at + i < size ? Platform.getByte(null, address + at + i) & 0xFF : 0;
            int least = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
            int most = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
            if (next < least || next > most)
                return -i;
        }
        return length;
    }
}
