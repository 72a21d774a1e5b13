package seglog.spark;

import java.lang.reflect.Method;
import java.util.Locale;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces scans by the Python data source with columnar scans. Scans that it does not know are left to
 * Spark: those with columns that only Python makes, and those of a Spark version with other classes.
 */
final class ColumnarStrategy extends SparkStrategy {
    private static final String NAME = "seglog";
    /** The setting that turns this strategy off, so that a session makes rows as without this jar. */
    private static final String SETTING = "spark.seglog.columnar";

    private static final Seq<SparkPlan> NOTHING = empty();

    private final SparkSession session;

    ColumnarStrategy(SparkSession session) {
        this.session = session;
    }

    @SuppressWarnings("unchecked")
    private static Seq<SparkPlan> empty() {
        return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
    }

    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
        try {
            DataSourceV2ScanRelation relation = relationBelow(plan);
            if (relation == null || !isKnown(relation.scan()) || !isOn())
                return NOTHING;
            LogicalPlan columnar = withScan(relation, new ColumnarScan((PythonScan) relation.scan()));
            return new DataSourceV2Strategy(session).apply(replace(plan, relation, columnar));
        } catch (ReflectiveOperationException | LinkageError | ClassCastException error) {
            return NOTHING; // another version of Spark: rows are made as without this jar
        }
    }

    private boolean isOn() {
        return Boolean.parseBoolean(session.sessionState().conf().getConfString(SETTING, "true"));
    }

    /** Returns the relation below a plan of only projections and filters, as Spark's own strategy does. */
    private static DataSourceV2ScanRelation relationBelow(LogicalPlan plan) {
        while (plan instanceof Project || plan instanceof Filter)
            plan = plan instanceof Project project ? project.child() : ((Filter) plan).child();
        return plan instanceof DataSourceV2ScanRelation relation ? relation : null;
    }

    private static boolean isKnown(Scan scan) throws ReflectiveOperationException {
        return scan instanceof PythonScan
                && NAME.equals(((String) Fields.of(scan, "shortName")).toLowerCase(Locale.ROOT))
                && ((Object[]) Fields.of(scan, "supportedFilters")).length == 0
                && areKnown(scan.readSchema());
    }

    private static boolean areKnown(StructType schema) {
        for (StructField field : schema.fields())
            if (!MessageVector.isKnown(field))
                return false;
        return schema.length() > 0;
    }

    private static LogicalPlan replace(LogicalPlan plan, LogicalPlan before, LogicalPlan after) {
        return plan.transform(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
            @Override
            public boolean isDefinedAt(LogicalPlan node) {
                return node == before;
            }

            @Override
            @SuppressWarnings("unchecked")
            public <A extends LogicalPlan, B> B applyOrElse(A node, scala.Function1<A, B> otherwise) {
                return node == before ? (B) after : otherwise.apply(node);
            }
        });
    }

    /** Copies a relation; versions of Spark differ in its other parameters. */
    private static LogicalPlan withScan(DataSourceV2ScanRelation relation, Scan scan)
            throws ReflectiveOperationException {
        Object[] parts = new Object[relation.productArity()];
        for (int i = 0; i < parts.length; i++) {
            Object part = relation.productElement(i);
            parts[i] = part == relation.scan() ? scan : part;
        }
        for (Method method : DataSourceV2ScanRelation.class.getMethods())
            if (method.getName().equals("copy") && method.getParameterCount() == parts.length)
                return (LogicalPlan) method.invoke(relation, parts);
        throw new NoSuchMethodException("copy");
    }
}
