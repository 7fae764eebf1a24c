package arag;

import java.util.Arrays;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
import org.apache.lucene.analysis.tokenattributes.PositionIncrementAttribute;
import org.apache.lucene.util.BytesRef;

/**
 * The words of texts, as Python has read them: UTF-8 with a blank between words, and 0x0b between
 * texts. Behind a word may be a tab and its normal form, which is else the word; one of the two may
 * be empty. What follows a line feed in a text are forms alone, and a line feed is a gap that no
 * phrase reaches over.
 */
public final class Words {
    private static final int GAP = 100;
    private static final byte TEXT_END = 0x0b;

    private byte[] bytes;
    private int count;
    private int texts;
    // Of each word: where it starts and ends, where its form starts and ends, and whether it is
    // behind a gap.
    private int[] wordStarts = new int[256];
    private int[] wordEnds = new int[256];
    private int[] formStarts = new int[256];
    private int[] formEnds = new int[256];
    private boolean[] gaps = new boolean[256];
    // Of each text: its first word, and its first form behind a gap.
    private int[] firsts = new int[16];
    private int[] behind = new int[16];

    /** Return a stream of the words, or of the forms, of texts that were read as one. */
    public static TokenStream stream(byte[] bytes, boolean forms) {
        Words words = new Words();
        words.read(bytes, 0, bytes.length);
        return words.new Stream(forms).of(0, words.texts);
    }

    /** Read the words in this part of an array, which must not change while they are used. */
    void read(byte[] array, int from, int to) {
        bytes = array;
        count = 0;
        texts = 0;
        begin();
        boolean isBehind = false;
        boolean isGap = false;
        int start = from;
        int form = from;
        for (int at = from; at <= to; at++) {
            byte sign = at == to ? TEXT_END : array[at];
            if (sign > ' ' || sign < 0) {
                continue;
            }
            if (sign == '\t') {
                form = at + 1;
                continue;
            }
            if (at > start) {
                add(start, form > start ? form - 1 : at, Math.max(form, start), at, isGap);
                isGap = false;
            }
            start = at + 1;
            if (sign == '\n') {
                isGap = true;
                if (!isBehind) {
                    isBehind = true;
                    behind[texts] = count;
                }
            } else if (sign == TEXT_END) {
                if (!isBehind) {
                    behind[texts] = count;
                }
                isBehind = false;
                isGap = false;
                texts++;
                begin();
            }
        }
    }

    /** Return the number of texts. */
    int texts() {
        return texts;
    }

    private void begin() {
        if (texts + 1 >= firsts.length) {
            firsts = Arrays.copyOf(firsts, 2 * texts + 2);
            behind = Arrays.copyOf(behind, firsts.length);
        }
        firsts[texts] = count;
    }

    private void add(int start, int end, int formStart, int formEnd, boolean isGap) {
        if (count == wordStarts.length) {
            wordStarts = Arrays.copyOf(wordStarts, 2 * count);
            wordEnds = Arrays.copyOf(wordEnds, 2 * count);
            formStarts = Arrays.copyOf(formStarts, 2 * count);
            formEnds = Arrays.copyOf(formEnds, 2 * count);
            gaps = Arrays.copyOf(gaps, 2 * count);
        }
        wordStarts[count] = start;
        wordEnds[count] = end;
        formStarts[count] = formStart;
        formEnds[count] = formEnd;
        gaps[count] = isGap;
        count++;
    }

    /**
     * The words of some of the texts or, of all words and then of all that is behind gaps, the forms.
     */
    final class Stream extends TokenStream {
        private final boolean forms;
        private final BytesRef word = new BytesRef();
        private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
        private final PositionIncrementAttribute increment =
                addAttribute(PositionIncrementAttribute.class);
        private int first;
        private int end;
        private int text;
        private int at;
        private int last;
        private boolean isBehind;

        Stream(boolean forms) {
            this.forms = forms;
        }

        /** Choose the texts from one number to before another. */
        Stream of(int from, int to) {
            first = from;
            end = to;
            return this;
        }

        @Override
        public void reset() {
            text = first;
            at = 0;
            last = 0;
            isBehind = false;
        }

        @Override
        public boolean incrementToken() {
            int[] starts = forms ? formStarts : wordStarts;
            int[] ends = forms ? formEnds : wordEnds;
            while (at == last || starts[at] == ends[at]) {
                if (at < last) {
                    at++;
                    continue;
                }
                if (text == end) {
                    if (!forms || isBehind) {
                        return false;
                    }
                    isBehind = true;
                    text = first;
                    continue;
                }
                at = isBehind ? behind[text] : firsts[text];
                last = isBehind ? firsts[text + 1] : behind[text];
                text++;
            }
            word.bytes = bytes;
            word.offset = starts[at];
            word.length = ends[at] - word.offset;
            term.setBytesRef(word);
            increment.setPositionIncrement(gaps[at] ? GAP : 1);
            at++;
            return true;
        }
    }
}
