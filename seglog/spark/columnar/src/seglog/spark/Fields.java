package seglog.spark;

import java.lang.reflect.Field;

/** Access to fields of Spark's classes that have no accessor. */
final class Fields {
    private Fields() {}

    static Object of(Object owner, String name) throws ReflectiveOperationException {
        return field(owner, name).get(owner);
    }

    static void set(Object owner, String name, Object value) throws ReflectiveOperationException {
        field(owner, name).set(owner, value);
    }

    private static Field field(Object owner, String name) throws ReflectiveOperationException {
        Field found = owner.getClass().getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }
}
