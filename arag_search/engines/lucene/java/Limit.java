package arag;

import java.io.IOException;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FilterDirectoryReader;
import org.apache.lucene.index.FilterLeafReader;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.Impacts;
import org.apache.lucene.index.ImpactsEnum;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.CollectionTerminatedException;
import org.apache.lucene.search.Collector;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.automaton.CompiledAutomaton;

/**
 * The deadline of the searches of a thread. Running searches check it now and then; a search that
 * is too late ends with Exceeded and returns nothing.
 *
 * <p>A TimedSearcher checks between windows of documents. A loose phrase can take long over a single
 * document, and a prefix before it reaches the first one; such queries use a TimedReader, which
 * checks at positions and terms, and would make other queries slower.
 */
final class Limit {
    private static final int FIRST_WINDOW = 2048;
    private static final int LEAST_WINDOW = 16;
    private static final long QUICK_NANOS = 4000000L;
    private static final long SLOW_NANOS = 16000000L;
    private static final int STEPS = 1023;

    private final ThreadLocal<Long> ends = new ThreadLocal<>();
    private int steps = 0;

    /** Limit the searches of this thread to so many nanoseconds from now; 0 means no limit. */
    void begin(long nanos) {
        if (nanos != 0L) {
            ends.set(System.nanoTime() + nanos);
        }
    }

    /** Remove the limit of this thread. */
    void end() {
        ends.remove();
    }

    boolean isSet() {
        return ends.get() != null;
    }

    void check() {
        Long end = ends.get();
        if (end != null && System.nanoTime() - end > 0L) {
            throw new Exceeded();
        }
    }

    /** Check at about one of a thousand calls, which threads share. */
    void checkNowAndThen() {
        if ((++steps & STEPS) == 0) {
            check();
        }
    }

    /** The error of a search that ran for too long. */
    public static final class Exceeded extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Exceeded() {
            super("the search took too long");
        }
    }

    /** A searcher that collects in windows of documents, which grow while they take little time. */
    static final class TimedSearcher extends IndexSearcher {
        private final Limit limit;

        TimedSearcher(IndexReader reader, Limit limit) {
            super(reader);
            this.limit = limit;
        }

        @Override
        protected void searchLeaf(
                LeafReaderContext leaf, int first, int end, Weight weight, Collector collector)
                throws IOException {
            if (!limit.isSet()) {
                super.searchLeaf(leaf, first, end, weight, collector);
                return;
            }
            limit.check();
            LeafCollector leafCollector;
            try {
                leafCollector = collector.getLeafCollector(leaf);
            } catch (CollectionTerminatedException error) {
                return;
            }
            ScorerSupplier supplier = weight.scorerSupplier(leaf);
            if (supplier != null) {
                supplier.setTopLevelScoringClause();
                try {
                    int last = Math.min(end, leaf.reader().maxDoc());
                    Bits live = leaf.reader().getLiveDocs();
                    collect(supplier.bulkScorer(), leafCollector, live, first, last);
                } catch (CollectionTerminatedException error) {
                    // The collector needs no more documents of this segment.
                }
            }
            leafCollector.finish();
        }

        private void collect(
                BulkScorer scorer, LeafCollector collector, Bits live, int first, int end)
                throws IOException {
            int window = FIRST_WINDOW;
            int at = first;
            long started = System.nanoTime();
            while (at < end) {
                int until = end - at > window ? at + window : end;
                at = Math.max(until, scorer.score(collector, live, at, until));
                limit.check();
                long now = System.nanoTime();
                if (now - started < QUICK_NANOS) {
                    window = window > (1 << 28) ? window : 2 * window;
                } else if (now - started > SLOW_NANOS) {
                    window = Math.max(LEAST_WINDOW, window / 4);
                }
                started = now;
            }
        }
    }

    /** A reader of the same index that checks the limit. */
    static final class TimedReader extends FilterDirectoryReader {
        private final Limit limit;

        TimedReader(DirectoryReader reader, Limit limit) throws IOException {
            super(reader, new Wrapper(limit));
            this.limit = limit;
        }

        @Override
        protected DirectoryReader doWrapDirectoryReader(DirectoryReader reader)
                throws IOException {
            return new TimedReader(reader, limit);
        }

        @Override
        public IndexReader.CacheHelper getReaderCacheHelper() {
            return in.getReaderCacheHelper();
        }
    }

    private static final class Wrapper extends FilterDirectoryReader.SubReaderWrapper {
        private final Limit limit;

        Wrapper(Limit limit) {
            this.limit = limit;
        }

        @Override
        public LeafReader wrap(LeafReader reader) {
            return new TimedLeaf(reader, limit);
        }
    }

    private static final class TimedLeaf extends FilterLeafReader {
        private final Limit limit;

        TimedLeaf(LeafReader reader, Limit limit) {
            super(reader);
            this.limit = limit;
        }

        @Override
        public Terms terms(String field) throws IOException {
            Terms terms = in.terms(field);
            return terms == null ? null : new TimedTerms(terms, limit);
        }

        @Override
        public IndexReader.CacheHelper getCoreCacheHelper() {
            return in.getCoreCacheHelper();
        }

        @Override
        public IndexReader.CacheHelper getReaderCacheHelper() {
            return in.getReaderCacheHelper();
        }
    }

    private static final class TimedTerms extends FilterLeafReader.FilterTerms {
        private final Limit limit;

        TimedTerms(Terms terms, Limit limit) {
            super(terms);
            this.limit = limit;
        }

        @Override
        public TermsEnum iterator() throws IOException {
            return new TimedTermsEnum(in.iterator(), limit);
        }

        @Override
        public TermsEnum intersect(CompiledAutomaton automaton, BytesRef start)
                throws IOException {
            return new TimedTermsEnum(in.intersect(automaton, start), limit);
        }
    }

    private static final class TimedTermsEnum extends FilterLeafReader.FilterTermsEnum {
        private final Limit limit;
        private int steps = 0;

        TimedTermsEnum(TermsEnum terms, Limit limit) {
            super(terms);
            this.limit = limit;
        }

        @Override
        public BytesRef next() throws IOException {
            if ((++steps & STEPS) == 0) {
                limit.check();
            }
            return in.next();
        }

        @Override
        public PostingsEnum postings(PostingsEnum reused, int flags) throws IOException {
            if (!PostingsEnum.featureRequested(flags, PostingsEnum.POSITIONS)) {
                return in.postings(reused, flags);
            }
            return new TimedPostings(in.postings(null, flags), limit);
        }

        @Override
        public ImpactsEnum impacts(int flags) throws IOException {
            ImpactsEnum impacts = in.impacts(flags);
            return PostingsEnum.featureRequested(flags, PostingsEnum.POSITIONS)
                    ? new TimedImpacts(impacts, limit)
                    : impacts;
        }
    }

    private static final class TimedPostings extends FilterLeafReader.FilterPostingsEnum {
        private final Limit limit;
        private int steps = 0;

        TimedPostings(PostingsEnum postings, Limit limit) {
            super(postings);
            this.limit = limit;
        }

        @Override
        public int nextPosition() throws IOException {
            if ((++steps & STEPS) == 0) {
                limit.check();
            }
            return in.nextPosition();
        }
    }

    private static final class TimedImpacts extends ImpactsEnum {
        private final ImpactsEnum in;
        private final Limit limit;
        private int steps = 0;

        TimedImpacts(ImpactsEnum in, Limit limit) {
            this.in = in;
            this.limit = limit;
        }

        @Override
        public int nextPosition() throws IOException {
            if ((++steps & STEPS) == 0) {
                limit.check();
            }
            return in.nextPosition();
        }

        @Override
        public int freq() throws IOException {
            return in.freq();
        }

        @Override
        public int startOffset() throws IOException {
            return in.startOffset();
        }

        @Override
        public int endOffset() throws IOException {
            return in.endOffset();
        }

        @Override
        public BytesRef getPayload() throws IOException {
            return in.getPayload();
        }

        @Override
        public int docID() {
            return in.docID();
        }

        @Override
        public int nextDoc() throws IOException {
            return in.nextDoc();
        }

        @Override
        public int advance(int document) throws IOException {
            return in.advance(document);
        }

        @Override
        public long cost() {
            return in.cost();
        }

        @Override
        public void advanceShallow(int document) throws IOException {
            in.advanceShallow(document);
        }

        @Override
        public Impacts getImpacts() throws IOException {
            return in.getImpacts();
        }
    }
}
