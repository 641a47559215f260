// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Completion scripts. What may stand where is taken from the table of commands; names come from the live list.
enum Completion {
    static func script(for shell: Shell) -> String {
        switch shell {
        case .bash: bash
        case .zsh: zsh
        case .fish: fish
        }
    }

    private static var commands: String { Command.allCases.map(\.rawValue).joined(separator: " ") }

    /// The options that take a value, as a pattern of `case`.
    private static func valued(_ kinds: (WordKind) -> Bool = { _ in true }) -> String {
        var words: Set<String> = []
        for option in CommandDescription.table.flatMap(\.allOptions) {
            guard let value = option.value, kinds(value.kind) else { continue }
            words.insert(option.name)
            if let letter = option.letter { words.insert("-\(letter)") }
        }
        return words.sorted().joined(separator: "|")
    }

    /// Which words the argument at each place may be.
    private static func places(_ words: (WordKind) -> String?) -> [String] {
        CommandDescription.table.flatMap { description in
            description.arguments.enumerated().compactMap { index, argument in
                words(argument.kind).map { "\(description.name):\(index)) \($0) ;;" }
            }
        }
    }

    /// What bash and zsh share: finds the command and how many of its arguments stand before the cursor.
    private static func scan(words: String, last: String, first: Int) -> [String] {
        [
            "    local command= count=0 index word directory=()",
            "    for ((index = \(first); index < \(last); index++)); do",
            "        word=${\(words)[index]}",
            "        case $word in",
            "            --) return ;;",
            "            --directory) ((index++)); directory=(--directory \"${\(words)[index]}\") ;;",
            "            \(valued { $0 != .directory })) ((index++)) ;;",
            "            -*) ;;",
            "            *) if [[ -z $command ]]; then command=$word; else ((count++)); fi ;;",
            "        esac",
            "    done",
        ]
    }

    private static func optionCases(_ add: (String) -> String) -> [String] {
        let common = Option.common.map(\.name).joined(separator: " ")
        return CommandDescription.table.filter { !$0.options.isEmpty }.map { description in
            "            \(description.name)) \(add((description.options + Option.common).map(\.name).joined(separator: " "))) ;;"
        } + ["            *) \(add(common)) ;;"]
    }

    private static var bash: String {
        func offer(_ list: String) -> String { "COMPREPLY=($(compgen -W '\(list)' -- \"$current\"))" }
        var lines = ["# Completion of portctl for bash.", "_portctl() {"]
        lines += [
            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} IFS=$' \\t\\n'",
            "    COMPREPLY=()",
        ]
        lines += scan(words: "COMP_WORDS", last: "COMP_CWORD", first: 1)
        lines += [
            "    case $previous in",
            "        \(valued { $0 == .directory })) COMPREPLY=($(compgen -d -- \"$current\")); return ;;",
            "        \(valued { $0 == .file })) COMPREPLY=($(compgen -f -- \"$current\")); return ;;",
            "        \(valued { $0 != .file && $0 != .directory })) return ;;",
            "    esac", "    if [[ $current == -* ]]; then", "        case $command in",
        ]
        lines += optionCases(offer) + ["        esac", "        return", "    fi", "    case $command:$count in"]
        lines.append("        :0) \(offer(commands)) ;;")
        lines += places { kind in
            switch kind {
            case .portName:
                // Anybody of the user chooses names: they are never expanded, and quoted where they are put.
                "while IFS= read -r word; do [[ $word == \"$current\"* ]] || continue; printf -v word %q \"$word\"; "
                    + "COMPREPLY+=(\"$word\"); done < <(\"${COMP_WORDS[0]}\" list --names \"${directory[@]}\" 2>/dev/null)"
            case .shell: offer(Shell.allCases.map(\.rawValue).joined(separator: " "))
            case .command: offer(commands)
            default: nil
            }
        }.map { "        " + $0 }
        lines += ["    esac", "}", "complete -F _portctl portctl"]
        return lines.map { $0 + "\n" }.joined()
    }

    private static var zsh: String {
        func offer(_ list: String) -> String { "compadd -- \(list)" }
        var lines = ["#compdef portctl", "# Completion of portctl for zsh.", "_portctl() {"]
        lines += ["    local current=${words[CURRENT]} previous=${words[CURRENT-1]}"]
        lines += scan(words: "words", last: "CURRENT", first: 2)
        lines += [
            "    case $previous in",
            "        \(valued { $0 == .directory })) _files -/; return ;;",
            "        \(valued { $0 == .file })) _files; return ;;",
            "        \(valued { $0 != .file && $0 != .directory })) return ;;",
            "    esac", "    if [[ $current == -* ]]; then", "        case $command in",
        ]
        lines += optionCases(offer) + ["        esac", "        return", "    fi", "    case $command:$count in"]
        lines.append("        :0) \(offer(commands)) ;;")
        lines += places { kind in
            switch kind {
            case .portName: "compadd -- ${(f)\"$(${words[1]} list --names $directory 2>/dev/null)\"}"
            case .shell: offer(Shell.allCases.map(\.rawValue).joined(separator: " "))
            case .command: offer(commands)
            default: nil
            }
        }.map { "        " + $0 }
        lines += [
            "    esac", "}", "if [[ $funcstack[1] == _portctl ]]; then _portctl; else compdef _portctl portctl; fi",
        ]
        return lines.map { $0 + "\n" }.joined()
    }

    private static var fish: String {
        var lines = ["# Completion of portctl for fish.", "complete -c portctl -f"]
        for option in Option.common { lines.append(fish(option, "")) }
        for description in CommandDescription.table {
            lines.append(
                "complete -c portctl -n __fish_use_subcommand -a \(description.name) -d \(quoted(description.summary))")
            let condition = " -n '__fish_seen_subcommand_from \(description.name)'"
            for option in description.options { lines.append(fish(option, condition)) }
            guard let kind = description.arguments.first?.kind else { continue }
            let words: String? =
                switch kind {
                case .portName: "(portctl list --names 2>/dev/null)"
                case .shell: Shell.allCases.map(\.rawValue).joined(separator: " ")
                case .command: commands
                default: nil
                }
            if let words { lines.append("complete -c portctl\(condition) -a '\(words)'") }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func fish(_ option: Option, _ condition: String) -> String {
        let takesFile = option.value.map { $0.kind == .file || $0.kind == .directory } ?? false
        return "complete -c portctl\(condition)" + (option.letter.map { " -s \($0)" } ?? "")
            + " -l \(option.name.dropFirst(2))" + (option.value == nil ? "" : takesFile ? " -r -F" : " -x")
            + " -d \(quoted(option.summary))"
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" ? "\\'" : String($0) }.joined() + "'"
    }
}
