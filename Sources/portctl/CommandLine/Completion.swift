// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A shell whose completion can be written.
enum Shell: String, CaseIterable {
    case bash, zsh, fish
}

/// Completion scripts. A script asks portctl itself for the completions of the word that is being written
/// (`Candidates`), so every shell completes from the table of commands and the live list of names.
enum Completion {
    static func script(for shell: Shell) -> String {
        switch shell {
        case .bash: bash
        case .zsh: zsh
        case .fish: fish
        }
    }

    /// The answer to a script: a line with the kind of words that are possible, then the words that portctl knows, one
    /// per line, for zsh and fish followed by a tab and their meaning. Those shells select and quote by themselves.
    ///
    /// - Parameters:
    ///   - line: the words of the command line after `portctl`; the last one is being written. bash passes them as
    ///     typed.
    ///   - shell: the shell whose script asks.
    ///   - names: gives the names that are held.
    /// - Returns: the lines, with their ends.
    static func answer(to line: [String], for shell: Shell, names: Candidates.Names) -> String {
        let candidates = Candidates(shell == .bash ? line.map(unquoted) : line, names: names)
        guard case .words(let words) = candidates else { return "\(candidates.kind)\n" }
        let lines: [String] =
            switch shell {
            case .bash: bashWords(words.map(\.text), for: line.last ?? "")
            case .zsh, .fish: words.map { $0.meaning.isEmpty ? $0.text : "\($0.text)\t\($0.meaning)" }
            }
        return ([candidates.kind] + lines).joinedLines()
    }

    private static let bash = #"""
        # Completion of portctl for bash.
        _portctl() {
            local program=${1/#\~\//$HOME/} line=${COMP_LINE:0:COMP_POINT} words=() prefix= kind= word index
            # Bash also breaks words at colons and equals signs: what has no space in between is one word.
            for word in "${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do
                if [[ ${#words[@]} == 0 || $line == [[:space:]]* ]]; then
                    line=${line#"${line%%[![:space:]]*}"}
                    words+=("")
                fi
                [[ $line == "$word"* ]] || word=$line
                line=${line#"$word"}
                prefix=${words[-1]}
                words[-1]+=$word
                [[ $word != [:=]* ]] || prefix=${words[-1]}
            done
            COMPREPLY=()
            while IFS= read -r word; do
                if [[ -z $kind ]]; then kind=$word; else COMPREPLY+=("${word#"$prefix"}"); fi
            done < <("$program" completion bash -- "${words[@]:1}" 2>/dev/null)
            case $kind in
                files) compopt -o default ;;
                directories) compopt -o filenames -o dirnames ;;
                program)
                    for ((index = 1; index < COMP_CWORD; index++)); do [[ ${COMP_WORDS[index]} != -- ]] || break; done
                    if declare -F _command_offset >/dev/null; then
                        _command_offset $((index + 1))
                    elif ((COMP_CWORD == index + 1)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "${words[-1]}")
                    else
                        compopt -o default
                    fi
                    ;;
            esac
        }
        complete -F _portctl portctl

        """#

    private static let zsh = #"""
        #compdef portctl
        # Completion of portctl for zsh.
        _portctl() {
            local program=${${(Q)words[1]}/#\~\//$HOME/} line
            local -a lines texts shown
            local -i width
            lines=("${(@f)$("$program" completion zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
            [[ $PREFIX != --*=* ]] || compset -P 1 '*='
            case $lines[1] in
                files) _files ;;
                directories) _files -/ ;;
                program)
                    (( CURRENT -= words[(i)--] ))
                    shift $words[(i)--] words
                    _normal
                    ;;
                words)
                    texts=("${(@)${(@)lines[2,-1]}%%$'\t'*}")
                    for line in $texts; do (( width = $#line > width ? $#line : width )); done
                    for line in "${(@M)lines[2,-1]:#*$'\t'*}"; do
                        shown+=("${(r:width:)line%%$'\t'*}  ${line#*$'\t'}")
                    done
                    if (( $#shown )); then compadd -l -d shown -a texts; else compadd -a texts; fi
                    ;;
            esac
        }
        if [[ $funcstack[1] == _portctl ]]; then _portctl; else compdef _portctl portctl; fi

        """#

    private static let fish = #"""
        # Completion of portctl for fish.
        function __portctl_candidates
            set -l words (commandline -opc)
            set -l current (commandline -ct)
            set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
            set -e words[1]
            set -l lines ($program completion fish -- $words "$current" 2>/dev/null)
            set -l kind "$lines[1]"
            set -e lines[1]
            set -l prefix (string match -r -- '^--[^=]*=' "$current")
            set -l path (string replace -r -- '^--[^=]*=' '' "$current")
            switch $kind
                case words
                    string join -- \n $lines
                case files
                    string join -- \n "$prefix"(__fish_complete_path "$path")
                case directories
                    string join -- \n "$prefix"(__fish_complete_directories "$path" '')
                case program
                    set -l rest $words[(math 1 + (contains -i -- -- $words))..]
                    complete -C (string join -- ' ' (string escape -- $rest) "$current")
            end
        end
        complete -c portctl -f -a '(__portctl_candidates)'

        """#
}

// Words as bash's completion passes and expects them: as typed, with their quotes. zsh and fish quote by themselves.
// Any process of the user chooses the names of ports, so the inserted text must be one word, in which bash expands
// nothing. Bash works on bytes: a character keeps its meaning whatever follows it, such as a combining mark. So words
// are read and written scalar by scalar, never by what a reader sees as one character.

extension Completion {
    /// A word of bash without its quotes. Nothing is expanded; a quote need not be closed.
    static func unquoted(_ word: String) -> String {
        var text = String.UnicodeScalarView()
        var quote: Unicode.Scalar?
        var rest = word.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch (scalar, quote) {
            case ("\\", nil): rest.popFirst().map { text.append($0) }
            case ("\\", "\""):
                if let next = rest.first, !#""\$`"#.unicodeScalars.contains(next) { text.append("\\") }
                rest.popFirst().map { text.append($0) }
            case ("'", nil), ("\"", nil): quote = scalar
            case (quote, _): quote = nil
            default: text.append(scalar)
            }
        }
        return String(text)
    }

    /// The words that begin with what has been written, quoted in the way in which the user has begun.
    static func bashWords(_ words: [String], for written: String) -> [String] {
        let beginning = unquoted(written)
        return words.filter { $0.utf8.starts(with: beginning.utf8) }.map {
            quoted($0, in: written.unicodeScalars.first)
        }
    }

    /// The text to write for a word, after the opening quote when the user has typed one. Bash adds the closing quote.
    private static func quoted(_ word: String, in quote: Unicode.Scalar?) -> String {
        word.unicodeScalars.map { scalar in
            switch (quote, scalar) {
            case ("'", "'"): #"'\''"#
            case ("'", _): "\(scalar)"
            // An exclamation mark refers to the history, unless it is in single quotes.
            case ("\"", "!"): #""'!'""#
            case ("\"", _): #""\$`"#.unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
            default: isPlain(scalar) ? "\(scalar)" : "\\\(scalar)"
            }
        }.joined()
    }

    /// Whether a scalar has no special meaning for bash. None beyond ASCII has one.
    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": true
        default: !scalar.isASCII || "_@%+=:,./-".unicodeScalars.contains(scalar)
        }
    }
}
