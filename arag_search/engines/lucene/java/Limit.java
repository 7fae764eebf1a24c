package arag;

import org.apache.lucene.index.QueryTimeout;

/**
 * The deadline of the searches of a thread. Lucene asks now and then whether it has passed, between
 * windows of documents, terms, points and doc values; a search that is too late then ends with
 * Exceeded and returns nothing.
 */
final class Limit implements QueryTimeout {
    private final ThreadLocal<Long> ends = new ThreadLocal<>();

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

    /** Throw Exceeded if the deadline has passed, since Lucene would return a part of the matches. */
    @Override
    public boolean shouldExit() {
        Long end = ends.get();
        if (end != null && System.nanoTime() - end > 0L) {
            throw new Exceeded();
        }
        return false;
    }

    /** The error of a search that ran for too long. */
    static final class Exceeded extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Exceeded() {
            super("the search took too long");
        }
    }
}
