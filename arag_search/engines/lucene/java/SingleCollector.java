package arag;

import java.util.Collection;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.CollectorManager;

/** A manager of one collector, which is enough for a searcher without threads. */
final class SingleCollector<C extends Collector> implements CollectorManager<C, C> {
    private final C collector;

    SingleCollector(C collector) {
        this.collector = collector;
    }

    @Override
    public C newCollector() {
        return collector;
    }

    @Override
    public C reduce(Collection<C> collectors) {
        return collector;
    }
}
