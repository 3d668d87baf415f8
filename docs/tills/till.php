<?php
// A whole till in PHP 8, without any extension.
//
// MCFD_URL=https://mcfd.local:8480 MCFD_KEY=ak_live_… MCFD_NIM=EL02000015-1 MCFD_CA=mcfd-ca.pem php till.php F-1001
// Without MCFD_URL the box is looked for on the shop's network.

declare(strict_types=1);

const FIXED = 'https://mcfd.local:8480'; // where no box announces itself
const PATIENCE = 120; // seconds that the customer waits at the most

const AGAIN = [408, 429, 502, 503, 504, 507];
// 502 and 503, but waiting does not help
const FOR_A_PERSON = ['MACHINE_ATTENTION', 'PAIR_NOT_COMPARED', 'LEDGER_DAMAGED', 'BOX_AMBIGUOUS', 'BRIDGE_ERROR'];

// The address of the box that announces itself as _mcfd._tcp (docs/network.md): one question by multicast DNS. Its certificate proves that it is
// the shop's, so that only https is of use here.
function findBox(): string
{
    $question = str_repeat("\0", 5) . "\1" . str_repeat("\0", 6) . "\5_mcfd\4_tcp\5local\0\0\x0c\0\1";
    $asked = stream_socket_server('udp://0.0.0.0:0', $error, $message, STREAM_SERVER_BIND);
    for ($tries = 0; $tries < 3; $tries++) {
        @stream_socket_sendto($asked, $question, 0, '224.0.0.251:5353');
        $ready = [$asked];
        $none = null;
        if (stream_select($ready, $none, $none, 1)) {
            $answer = stream_socket_recvfrom($asked, 9000, 0, $peer);
            if (preg_match('~\0\x21\0\x01.{6}\0{4}(..)~s', $answer, $service)) { // SRV: its port
                return 'https://' . strstr($peer, ':', true) . ':' . unpack('n', $service[1])[1];
            }
        }
    }
    return FIXED;
}

define('BASE', (getenv('MCFD_URL') ?: findBox()) . '/v1/mcf/' . getenv('MCFD_NIM'));

class Refused extends Exception {} // what was sent has to be corrected

// The answer as text. Until there is one, the same request with the same key: it is certified at most once.
function call(string $method, string $path, ?array $body = null, string $key = ''): string
{
    $headers = ['Authorization: Bearer ' . getenv('MCFD_KEY'), 'Accept-Language: fr', 'Connection: close'];
    if ($body !== null) {
        $headers[] = 'Content-Type: application/json';
    }
    if ($key !== '') {
        $headers[] = 'Idempotency-Key: ' . $key;
    }
    if ($path === '/certify' && getenv('MCFD_TEST')) { // with a test key: docs/testing-your-till.md
        $headers[] = 'Mcfd-Test: ' . getenv('MCFD_TEST');
    }
    $options = ['method' => $method, 'header' => $headers, 'timeout' => PATIENCE, 'ignore_errors' => true, 'protocol_version' => 1.1];
    if ($body !== null) {
        $options['content'] = json_encode((object) $body, JSON_UNESCAPED_UNICODE);
    }
    $tls = getenv('MCFD_CA') ? ['cafile' => getenv('MCFD_CA')] : [];
    $deadline = time() + PATIENCE;
    while (true) {
        $wait = 2;
        $http_response_header = [];
        $answer = @file_get_contents(BASE . $path, false, stream_context_create(['http' => $options, 'ssl' => $tls]));
        $head = implode("\n", $http_response_header);
        $isWhole = !preg_match('~^Content-Length: (\d+)~mi', $head, $found) || strlen((string) $answer) >= (int) $found[1];
        if ($answer !== false && $isWhole && preg_match('~^HTTP/\S+ (\d+)~', $head, $found)) {
            $status = (int) $found[1];
            if ($status < 300) {
                return $answer;
            }
            $problem = json_decode($answer, true);
            if (isset($problem['code']) && (!in_array($status, AGAIN, true) || in_array($problem['code'], FOR_A_PERSON, true))) {
                throw new Refused($problem['code'] . ': ' . $problem['detail']);
            }
            if (preg_match('~^Retry-After: (\d+)~mi', $head, $found)) {
                $wait = (int) $found[1];
            }
        } // otherwise the box restarts, the cable is out, or a proxy answers: nothing is known, so the same again
        if (time() + $wait > $deadline) {
            throw new RuntimeException('no answer yet; send the same invoice again with the same key');
        }
        sleep($wait);
    }
}

function certify(string $path, array $invoice): array
{
    $receipt = json_decode(call('POST', $path, $invoice, 'till1-' . $invoice['invoiceNumber']), true);
    foreach ($receipt['warnings'] as $warning) {
        fwrite(STDERR, 'warning: ' . $warning['message'] . "\n");
    }
    return $receipt;
}

$number = $argv[1];
$sale = [
    'invoiceNumber' => $number,
    'invoiceType' => 'FV',
    'operatorId' => '7',
    'operatorName' => 'Awa',
    'customer' => ['clientType' => 'CC'],
    'items' => [
        ['name' => 'Riz 25 kg', 'code' => 'R25', 'taxGroup' => 'B', 'unitPrice' => 15000, 'quantity' => 2],
        ['name' => 'Pain', 'taxGroup' => 'A', 'unitPrice' => 150, 'quantity' => 4],
    ],
    'payments' => [['method' => 'E', 'amount' => 30000], ['method' => 'M', 'amount' => 600]],
];
$receipt = certify('/certify', $sale);
echo "certified $number {$receipt['codeSecef']} {$receipt['totalTtc']}\n";
echo call('GET', "/certifications/{$receipt['codeSecef']}/ticket?width=42"), "\n";

$credit = [
    'invoiceNumber' => "$number-A",
    'invoiceType' => 'FA',
    'creditNoteNature' => 'RAM',
    'creditNoteRef' => "{$receipt['nim']}-{$receipt['fvc']}",
    'items' => [$sale['items'][1]],
    'payments' => [['method' => 'E', 'amount' => 600]],
];
echo 'credited ', certify('/credit-note', $credit)['codeSecef'], "\n";

$closure = json_decode(call('POST', '/reports/z', [], "z-after-$number"), true);
echo "closed Z {$closure['z_number']} {$closure['total_ttc']}\n";
