package seglog.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** The class for {@code spark.sql.extensions}: makes reads of the format {@code seglog} columnar. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        // Not a rule of the optimizer: added rules run before scans are made.
        extensions.injectPlannerStrategy(session -> new ColumnarStrategy((SparkSession) session));
        return BoxedUnit.UNIT;
    }
}
