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
 * The time until which the searches of a thread may run. Whoever works asks it now and then; a
 * search that is too late ends with Exceeded, and gives nothing.
 *
 * <p>Between windows of documents a TimedSearcher asks. A single document can take long where a
 * phrase is loose, and a prefix before the first document is met; for such queries there is a
 * TimedReader, which asks at positions and terms, and makes others slower.
 */
final class Limit {
    private static final int FIRST_WINDOW = 2048;
    private static final int LEAST_WINDOW = 16;
    private static final long QUICK_NANOS = 4000000L;
    private static final long SLOW_NANOS = 16000000L;
    private static final int STEPS = 1023;

    private final ThreadLocal ends = new ThreadLocal();

    /** Let the searches of this thread run for so long from now on; 0 is without end. */
    void begin(long nanos) {
        if (nanos != 0L) {
            ends.set(Long.valueOf(System.nanoTime() + nanos));
        }
    }

    /** Let the searches of this thread run without end again. */
    void end() {
        ends.remove();
    }

    boolean isSet() {
        return ends.get() != null;
    }

    void check() {
        Long end = (Long) ends.get();
        if (end != null && System.nanoTime() - end.longValue() > 0L) {
            throw new Exceeded();
        }
    }

    /** A search has run for too long. */
    public static final class Exceeded extends RuntimeException {
        Exceeded() {
            super("the search took too long");
        }
    }

    /** Collects the documents of a segment in windows, which grow while they take little time. */
    static final class TimedSearcher extends IndexSearcher {
        private final Limit limit;

        TimedSearcher(IndexReader reader, Limit limit) {
            super(reader);
            this.limit = limit;
        }

        protected void searchLeaf(
                LeafReaderContext leaf, int first, int end, Weight weight, Collector collector)
                throws IOException {
            if (!limit.isSet()) {
                super.searchLeaf(leaf, first, end, weight, collector);
                return;
            }
            limit.check();
            LeafCollector found;
            try {
                found = collector.getLeafCollector(leaf);
            } catch (CollectionTerminatedException error) {
                return;
            }
            ScorerSupplier supplier = weight.scorerSupplier(leaf);
            if (supplier != null) {
                supplier.setTopLevelScoringClause();
                try {
                    int last = Math.min(end, leaf.reader().maxDoc());
                    Bits live = leaf.reader().getLiveDocs();
                    collect(supplier.bulkScorer(), found, live, first, last);
                } catch (CollectionTerminatedException error) {
                    // This segment has no more of what is wanted.
                }
            }
            found.finish();
        }

        private void collect(
                BulkScorer scorer, LeafCollector found, Bits live, int first, int end)
                throws IOException {
            int window = FIRST_WINDOW;
            int at = first;
            long begun = System.nanoTime();
            while (at < end) {
                int until = end - at > window ? at + window : end;
                at = Math.max(until, scorer.score(found, live, at, until));
                limit.check();
                long now = System.nanoTime();
                if (now - begun < QUICK_NANOS) {
                    window = window > (1 << 28) ? window : 2 * window;
                } else if (now - begun > SLOW_NANOS) {
                    window = Math.max(LEAST_WINDOW, window / 4);
                }
                begun = now;
            }
        }
    }

    /** The same index, read with an eye on the time. */
    static final class TimedReader extends FilterDirectoryReader {
        private final Limit limit;

        TimedReader(DirectoryReader reader, Limit limit) throws IOException {
            super(reader, new Wrapper(limit));
            this.limit = limit;
        }

        protected DirectoryReader doWrapDirectoryReader(DirectoryReader reader)
                throws IOException {
            return new TimedReader(reader, limit);
        }

        public IndexReader.CacheHelper getReaderCacheHelper() {
            return in.getReaderCacheHelper();
        }
    }

    private static final class Wrapper extends FilterDirectoryReader.SubReaderWrapper {
        private final Limit limit;

        Wrapper(Limit limit) {
            this.limit = limit;
        }

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

        public Terms terms(String field) throws IOException {
            Terms terms = in.terms(field);
            return terms == null ? null : new TimedTerms(terms, limit);
        }

        public IndexReader.CacheHelper getCoreCacheHelper() {
            return in.getCoreCacheHelper();
        }

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

        public TermsEnum iterator() throws IOException {
            return new TimedTermsEnum(in.iterator(), limit);
        }

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

        public BytesRef next() throws IOException {
            if ((++steps & STEPS) == 0) {
                limit.check();
            }
            return in.next();
        }

        public PostingsEnum postings(PostingsEnum reused, int flags) throws IOException {
            if (!PostingsEnum.featureRequested(flags, PostingsEnum.POSITIONS)) {
                return in.postings(reused, flags);
            }
            return new TimedPostings(in.postings(null, flags), limit);
        }

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

        public int nextPosition() throws IOException {
            if ((++steps & STEPS) == 0) {
                limit.check();
            }
            return in.nextPosition();
        }

        public int freq() throws IOException {
            return in.freq();
        }

        public int startOffset() throws IOException {
            return in.startOffset();
        }

        public int endOffset() throws IOException {
            return in.endOffset();
        }

        public BytesRef getPayload() throws IOException {
            return in.getPayload();
        }

        public int docID() {
            return in.docID();
        }

        public int nextDoc() throws IOException {
            return in.nextDoc();
        }

        public int advance(int document) throws IOException {
            return in.advance(document);
        }

        public long cost() {
            return in.cost();
        }

        public void advanceShallow(int document) throws IOException {
            in.advanceShallow(document);
        }

        public Impacts getImpacts() throws IOException {
            return in.getImpacts();
        }
    }
}
